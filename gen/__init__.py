"""The generator: what follows from the operator table, written when CMake configures.

docs/notes/generator.md says which module writes what.
"""

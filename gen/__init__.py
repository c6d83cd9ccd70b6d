"""The generator: what follows from the operator table, written when CMake configures.

reads the table     table.py (entries), schema.py (signatures), types.py (argument types)
its expressions     expr.py, statements.py, values.py (types, conversions), reads.py (what is read)
C++ of operators    operators.py (a file of them), contract.py, device.py, fallback.py, dispatch.py,
                    records.py; cpp.py (names and declarations that all agree on), text.py
gradients           autograd.py (the layer), nodes.py, saved.py, forward.py
kernels             kernels.py (switches by device), pointwise.py (loops of functors)
headers             public.py (for users), declare.py (for the library)
Python              calls.py (names), python.py (bindings), stubs.py (docstrings and stubs)
files               __main__.py, pieces.py (where long files are cut)
"""

"""Type stubs: what editors and type checkers read of the operators and of what C++ defines.

``taeda/_C.pyi`` has Tensor and the classes written in C++ (head.pyi.in), ``_operators.pyi`` the
functions of ``torch``, ``__init__.pyi`` the names of the package, of which Python's are read from
its sources; one file more for each module whose functions come from the table. Modules written in
Python have their types in their own text.
"""

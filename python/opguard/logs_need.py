"""Libraries that a method needs, and that the program may not have.

    need("pyarrow.parquet", "to_parquet")      the module; or ImportError: to_parquet needs pyarrow, which ..."""

import importlib


def need(module, method):
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ImportError("%s needs %s, which this interpreter does not have: pip install %s (%s)" % (method, package, package, error)) from None

"""The one thing that pyproject.toml cannot say: an extension that may fail to build.

Without a compiler or Python's headers the package is installed all the same; the recorder's pen is in Python
then.
"""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension("rankscope.ingest._fast", ["src/rankscope/ingest/_fast.c"], optional=True),
    ]
)

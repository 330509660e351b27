"""Archives of compiled functions and modules: `jit.save` and `jit.load`.

    archive/format               "toytorch.jit 1"
    archive/module.json          the tree of modules, the methods, what the tensors look like
    archive/graphs/forward.txt   the graph of a method, as it is printed
    archive/data/0, 1, …         the elements of parameters, buffers, attributes and constants

A zip file of plain records, as `toytorch.save` writes. Loading looks operations up by name and
builds modules that have nothing but their tensors, children and compiled methods: nothing in a file
is run, and no more memory is taken than the file accounts for.
"""

from __future__ import annotations

import json
import os
from typing import Any

from toytorch.facts.device import device
from toytorch.jit.archive_parts import Tensors, Values, methods_of, stored_graph
from toytorch.jit.archive_tree import check_attributes, module_from, tree_of
from toytorch.jit.function import ScriptFunction
from toytorch.jit.module import Inside, ScriptModule
from toytorch.serialization.archive import COMPILED, DamagedArchive, Reader, Writer
from toytorch.serialization.atomic import replacing

FORMAT = b"toytorch.jit 1\n"
READING = (ValueError, TypeError, LookupError, AttributeError, RuntimeError, OverflowError)
MISTAKES = (*READING, MemoryError, StopIteration)  # what reading a damaged file may raise


def save(m: object, f: object, _extra_files: dict[str, Any] | None = None) -> None:
    """Writes a compiled function or module to a path or a binary file.

    A path leads to the old file or the whole new one at any moment. Raises AttributeError for what
    is not compiled, RuntimeError for graphs that call Python. Like `torch.jit.save`; the file is
    not one of PyTorch's.

    >>> import io
    >>> file = io.BytesIO()
    >>> save(torch.jit.trace(lambda x: x.tanh() * 2, torch.ones(2)), file)
    >>> load(file)(torch.zeros(3))
    tensor([0., 0., 0.])
    """
    m = m.module if isinstance(m, Inside) else m
    if not isinstance(m, (ScriptModule, ScriptFunction)):
        raise AttributeError(
            f"'{type(m).__name__}' object has no attribute 'save': only compiled functions and "
            "modules can be saved, use jit.script or jit.trace first"
        )
    records = packed(m, _extra_files or {})  # before a file is opened: a refusal leaves no trace
    if isinstance(f, (str, os.PathLike)):
        with replacing(f) as file:
            written(file, records)
    elif hasattr(f, "write"):
        written(f, records)
    else:
        raise AttributeError(f"'{type(f).__name__}' object has no attribute 'write'")


def packed(m: Any, extra: dict[str, Any]) -> dict[str, Any]:
    """All records of an archive."""
    tensors = Tensors()
    values = Values(tensors)
    is_module = isinstance(m, ScriptModule)
    methods = m._methods if is_module else {m.name: m}
    about: dict[str, Any] = {"kind": "module" if is_module else "function", "methods": {}}
    records: dict[str, Any] = {"format": FORMAT, "module.json": b""}
    for number, (name, function) in enumerate(methods.items()):
        text, details = stored_graph(function, values)
        record = f"graphs/{name if name.isidentifier() else number}.txt"
        about["methods"][name] = {"graph": record, **details}
        records[record] = text.encode()
    if is_module:
        about["class"] = type(m).__name__ if "_original" in m.__dict__ else "Scripted"
        about["tree"] = tree_of(m, methods, values)
        if "__getstate__" in methods and "__setstate__" in methods:
            about["state"] = values.packed(methods["__getstate__"]())
    about["tensors"] = tensors.described
    records["module.json"] = json.dumps(about, indent=1).encode()
    for i, array in tensors.bytes():
        records[f"data/{i}"] = array
    for name, content in extra.items():
        records[f"extra/{name}"] = content.encode() if isinstance(content, str) else content
    return records


def written(file: Any, records: dict[str, Any]) -> None:
    """Writes records into an open file."""
    writer = Writer(file)
    for name, content in records.items():
        writer.add(name, content)
    writer.close()


def load(
    f: Any,
    map_location: Any = None,
    _extra_files: dict[str, Any] | None = None,
    _restore_shapes: bool = False,
) -> Any:
    """Reads what `save` wrote: a module that runs, trains and is saved again, or a function.

    `map_location` is the device for all tensors. Raises ValueError for a path that leads nowhere,
    DamagedArchive (a RuntimeError that names the file) for a file that is no archive of this kind,
    not a whole one, or asks for operations that do not exist. Like `torch.jit.load`.
    """
    place = None if map_location is None else checked_place(map_location)
    if isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {os.fspath(f)} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {os.fspath(f)} is a directory")
        with open(f, "rb") as file:
            return unpacked(Reader(file, os.fspath(f)), place, _extra_files)
    if not hasattr(f, "read"):
        raise AttributeError(f"'{type(f).__name__}' object has no attribute 'read'")
    f.seek(0)
    name = getattr(f, "name", None)
    return unpacked(
        Reader(f, name if isinstance(name, str) else f"<{type(f).__name__}>"), place, _extra_files
    )


def checked_place(map_location: object) -> device:
    """`map_location` as a device."""
    if not isinstance(map_location, (str, device)):
        raise ValueError(
            "map_location should be either None, string or torch.device, but got "
            f"type: {type(map_location)}"
        )
    return map_location if isinstance(map_location, device) else device(map_location)


def unpacked(reader: Reader, place: object, extra: dict[str, Any] | None) -> Any:
    """The function or module of an archive; every mistake in it is the file's."""
    if "format" not in reader:
        other = (
            COMPILED
            if any(r.startswith("code/") for r in reader.records)
            else "a file of toytorch.save, which toytorch.load reads"
            if "data.pkl" in reader
            else "no archive of compiled modules"
        )
        raise DamagedArchive(f"{reader.name} is {other}")
    found = reader.read("format").tobytes()
    if found != FORMAT:
        raise DamagedArchive(f"{reader.name}: unknown format {found[:40]!r}, expected {FORMAT!r}")
    try:
        about = json.loads(reader.read("module.json").tobytes())
        values = Values(Tensors.of(about["tensors"], reader, place))
        methods = methods_of(about["methods"], reader, values)
        made = whole(about, methods, values)
    except DamagedArchive:
        raise
    except MISTAKES as error:
        what = f"{type(error).__name__}: {error}"
        raise DamagedArchive(f"{reader.name} is damaged or hostile: {what[:2000]}") from None
    for name in extra or {}:
        if f"extra/{name}" in reader:
            extra[name] = reader.read(f"extra/{name}").tobytes()  # type: ignore[index]  # it has names
    return made


def whole(about: Any, methods: dict[str, ScriptFunction], values: Values) -> Any:
    """The function or the module that the methods make."""
    if about["kind"] == "module":
        made = module_from(about["tree"], about["class"], methods, values)
        if "state" in about:
            methods["__setstate__"](values.of(about["state"]))
        return made
    if about["kind"] != "function":
        raise ValueError(f"an archive holds a module or a function, not {about['kind']!r}")
    (function,) = methods.values()
    check_attributes(function.graph, None)
    return function

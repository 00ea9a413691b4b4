"""`kvnode emit`: a block as Verilog, with the map of its ports, and its registers as a C header."""

from pathlib import Path

import click

from hw.params import load_params
from hw.rdl.cheader import c_header
from hw.rtl.blocks import BLOCKS
from hw.rtl.emit import emit as emit_component
from scripts.outputs import Folder, complete_files


@click.command()
@click.argument("blocks", metavar="[BLOCK]...", nargs=-1, type=click.Choice(sorted(BLOCKS)))
@click.option("--config", type=click.Path(path_type=Path), help="Parameter file (TOML).")
@click.option("--set", "overrides", metavar="K=V", multiple=True, help="Change one parameter; may be repeated.")
@click.option("-o", "--out", type=Folder(), required=True, help="Folder to write to.")
def emit(blocks: tuple[str, ...], config: Path | None, overrides: tuple[str, ...], out: Path) -> None:
    """Write each BLOCK (default: all) as BLOCK.v and its ports with all their fields as BLOCK.json.

    With csr come the registers of a slice as kvnode.h. Nothing is written unless all is.
    """
    params = load_params(config, overrides)
    names: list[str] = []
    with complete_files(out) as folder:
        for block in blocks or BLOCKS:
            names += (file.name for file in emit_component(BLOCKS[block](params), block).write(folder))
            if block == "csr":
                names.append("kvnode.h")
                (folder / "kvnode.h").write_text(c_header(), encoding="utf-8")
    for name in names:
        click.echo(out / name)

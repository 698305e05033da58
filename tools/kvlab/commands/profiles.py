"""`kvlab profiles`: levels of hardware from microcontroller to server, with sources."""

from __future__ import annotations

from pathlib import Path

import click

from kvlab import facts, output, profiles
from kvlab.profiles import Profile


@click.command(epilog="\b\nExamples:\n  kvlab profiles \n  kvlab profiles server --json out/server.json")
@click.argument("name", required=False)
@output.json_option
def command(name: str | None, json_path: Path | None) -> None:
    """List the profiles: memories with their sources, and the defaults recommended there."""
    known = [profiles.load(each) for each in ([name] if name else profiles.names())]
    for profile in known:
        show(profile)
    if json_path is not None:
        output.write_json(
            json_path,
            {
                "profiles": [
                    {
                        **{k: v for k, v in vars(p).items() if k not in ("memories", "reserved_bytes")},
                        "reserved_bytes": vars(p.reserved_bytes),
                        "memories": [
                            {"name": m.name, "role": m.role, **{k: vars(f) for k, f in m.facts().items()}}
                            for m in p.memories
                        ],
                    }
                    for p in known
                ]
            },
        )


def show(profile: Profile) -> None:
    known = [
        (memory.role, f"{memory.name}.{key}", fact)
        for memory in profile.memories
        for key, fact in memory.facts().items()
    ]
    known.append(("main", "reserved_bytes", profile.reserved_bytes))
    output.table(
        f"{profile.name}: {profile.title} ({profile.level})",
        [(role, key, facts.shown(key, fact.value), fact.kind) for role, key, fact in known],
    )
    for _, key, fact in known:
        click.echo(f"- {facts.cited(key, fact)}")
    chosen = (f"{key} {', '.join(v) if isinstance(v, list) else v}" for key, v in profile.defaults.items())
    click.echo(f"- defaults: {'; '.join(chosen)}; from {profile.defaults_source}\n")

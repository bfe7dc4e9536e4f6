"""The options of a run as they are written: in flags, in a file of one run, in conditions of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self, TypeAlias

import msgspec
from msgspec import Meta

from shadowprice.analysis.run_options import RunOptions
from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.documents.plain_yaml import parse, read_small
from shadowprice.instances.documents.schema import Name, decode
from shadowprice.instances.files import absolute, parse_toml, read_text
from shadowprice.instances.samples import load_samples
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.options.reading import terms_of_mapping, with_terms
from shadowprice.instances.terms.settings import TermContext, TermSettings
from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution
from shadowprice.user_code import code_from

Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=2**32, description="seconds >= 0")]


class ReadOptions(NamedTuple):
    """Cluster and options of a run, files read."""

    cluster: Cluster
    options: RunOptions


class WrittenOptions(Brief, msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Options of a run before anything of them is looked up or read.

    Parameters
    ----------
    preset, placement, predictor : str, optional
        Names, as of :class:`RunOptions`.
    round_s, first_round_s : float, optional
        Rounds [s].
    samples : str, optional
        File of service times.
    drop_infeasible : bool
        Whether jobs that can never run are left out.
    sealed : bool
        Whether the policy runs in a process of its own.
    with_ : mapping of str to mapping
        Settings of terms by the names of these, the key ``with`` of a file.
    """

    preset: Name | None = None
    placement: Name | None = None
    round_s: Seconds | None = None
    first_round_s: Seconds | None = None
    predictor: Name | None = None
    samples: Name | None = None
    drop_infeasible: bool = False
    sealed: bool = False
    with_: dict[Name, Any] = msgspec.field(default_factory=dict, name="with")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Options of a file in TOML, or in YAML or JSON; files that it names are in its folder.

        Raises
        ------
        InputError
            Naming the file, the place, the value and what was expected.
        """
        file = Path(path)
        data: object
        if file.suffix == ".toml":
            data = parse_toml(read_text(file), str(file))
        else:
            data = parse(read_small(file), str(file), truth_values=True)
        written = decode(cls, data, str(file), numbers_as_text=True)
        return written.within(file.parent, f"{file}: with")

    def within(self, folder: Path, where: str) -> Self:
        """The same options, whose paths are relative to a folder, with absolute ones.

        Raises
        ------
        InputError
            If a term is not as expected.
        """
        terms = (term.within(folder) for term in self.terms(where))
        return msgspec.structs.replace(
            self,
            samples=None if self.samples is None else absolute(self.samples, folder),
            placement=None if self.placement is None else code_from(self.placement, folder),
            predictor=None if self.predictor is None else code_from(self.predictor, folder),
            with_={each.label: each.settings for each in terms},
        )

    def joined(self, other: Self, where: str, other_is: str) -> Self:
        """These options and others, each said by one of the two.

        Parameters
        ----------
        where, other_is : str
            Where these are from, and the others, for messages.

        Raises
        ------
        InputError
            Naming an option or a term that both say.
        """
        mine, theirs = msgspec.to_builtins(self), msgspec.to_builtins(other)
        twice = [name for name in theirs if name in mine and name != "with"]
        twice += [f"with {name}" for name in other.with_ if name in self.with_]
        if twice:
            raise InputError(
                f"{where}: says {twice[0]}, as {other_is} do; expected it in one of the two"
            )
        both = {**mine, **theirs, "with": {**self.with_, **other.with_}}
        return msgspec.convert(both, type(self))

    def terms(self, where: str) -> tuple[TermSettings, ...]:
        """Terms, in the order in which they are read.

        Raises
        ------
        InputError
            If one is not as expected.
        """
        return terms_of_mapping(self.with_, where)

    def read(
        self,
        cluster: str | Cluster,
        table: Throughputs | None = None,
        *,
        jobs: str,
        seed: int = 0,
        origin_s: float | None = None,
        endless: bool = False,
        drawn_by: int = 0,
        more: Mapping[str, Any] | None = None,
    ) -> ReadOptions:
        """The cluster and the options of a run, files read.

        Parameters
        ----------
        table : Throughputs, optional
            Rates, of pairs of jobs among them.
        seed : int
            Of what draws random numbers.
        jobs, origin_s, endless
            As of :class:`TermContext`.
        drawn_by : int
            Seed of what terms draw, where they say no other.
        more : mapping, optional
            Options of :class:`RunOptions` that cannot be written.

        Raises
        ------
        InputError
            If a file or a value is not as expected.
        """
        samples = None
        if self.samples is not None:
            samples = ServiceDistribution(load_samples(self.samples))
        plain = RunOptions(
            preset=self.preset,
            placement=self.placement,
            round_s=self.round_s,
            first_round_s=self.first_round_s,
            samples=samples,
            seed=seed,
            sharing_rates=table,
            predictor=self.predictor,
            sealed=self.sealed,
        )
        where = cluster if isinstance(cluster, Cluster) else Cluster.load(cluster)
        context = TermContext(where, jobs, origin_s, endless, drawn_by)
        whole = with_terms(context, self.terms("with"))
        return ReadOptions(whole.cluster, replace(plain, **whole.options, **(more or {})))

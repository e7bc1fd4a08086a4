"""The certificates and passwords of a secured platform: who may read them, and when they expire."""

from collections.abc import Iterator
from typing import Final

from deploy.certificates.authority import AuthorityError
from deploy.certificates.private_files import is_private
from deploy.doctor.finding import Context, Finding, ok, problem, warning
from deploy.security.folder import RENEWED_BEFORE_DAYS, SecurityFolder

_SHOWN_MAX: Final = 5
_AUTHORITY_DAYS_MIN: Final = 365
"""A new authority has to reach every client before the old one ends."""


def secrets(context: Context) -> Iterator[Finding]:
    """May only their owner read the passwords and keys?"""
    folder = SecurityFolder(context.data)
    try:
        if not folder.is_set_up:
            return
        paths = [folder.path, *sorted(folder.path.rglob("*"))]
        open_to_others = [path for path in paths if not is_private(path)]
    except OSError as error:
        yield problem("Secrets", f"{folder.path} cannot be read: {error.strerror}", "run it as the platform's user")
        return
    if open_to_others:
        shown = ", ".join(str(path.relative_to(context.data)) for path in open_to_others[:_SHOWN_MAX])
        more = f" and {len(open_to_others) - _SHOWN_MAX} more" if len(open_to_others) > _SHOWN_MAX else ""
        step = f"shut others out:  chmod -R go= {folder.path}"
        yield problem("Secrets", f"others than their owner may use {shown}{more}", step)
    else:
        yield ok("Secrets", f"only their owner may read {folder.path}")


def certificates(context: Context) -> Iterator[Finding]:
    """Do certificates expire soon?"""
    folder = SecurityFolder(context.data)
    authority = folder.authority
    try:
        if not folder.is_set_up:
            return
        own, issued = authority.own(), authority.issued()
    except (AuthorityError, OSError) as error:
        yield problem("Certificates", str(error), f"compare with a backup of {folder.path}")
        return
    soon = [one for one in issued if authority.days_left(one) < RENEWED_BEFORE_DAYS]
    for one in soon:
        days = authority.days_left(one)
        found = f"expires in {days} days" if days >= 0 else "has expired"
        step = f"renew it; what runs takes it up by itself:  caudal certificate renew {one.name} --folder {folder.path}"
        yield (warning if days >= 0 else problem)(
            f"Certificate: {one.name}", f"{found} ({one.not_after:%Y-%m-%d})", step
        )
    if (days := authority.days_left(own)) < _AUTHORITY_DAYS_MIN:
        yield warning("Certificates", f"the authority itself expires in {days} days: plan a new one with its clients")
    if issued and not soon:
        first = min(issued, key=lambda one: one.not_after)
        yield ok("Certificates", f"{len(issued)}, the first expires on {first.not_after:%Y-%m-%d} ({first.name})")

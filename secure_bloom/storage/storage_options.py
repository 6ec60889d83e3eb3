"""``storage_options``: how S3 is accessed, by the names of Polars, deltalake and pandas.

    storage_options={"aws_access_key_id": ..., "aws_endpoint_url": "http://minio:9000"}

The settings apply to the objects at the given paths. No path, report or log contains them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import Any, Final, ParamSpec, TypeVar

from secure_bloom.errors import PolicyError
from secure_bloom.storage.paths import Paths, as_paths, is_object_uri, object_uri
from secure_bloom.storage.store_grants import S3Settings, StoreGrant
from secure_bloom.storage.table_objects import options_of, table_path

P = ParamSpec("P")
R = TypeVar("R")


def _is_true(value: object) -> bool:
    return str(value).lower() in ("true", "1")


#: Setting -> how its value is taken, and its names: Polars and deltalake, fsspec, pyiceberg.
_SETTINGS: Final[Mapping[str, tuple[Callable[[Any], Any], tuple[str, ...]]]] = {
    "endpoint": (
        str,
        ("aws_endpoint_url", "aws_endpoint", "endpoint_url", "endpoint", "s3.endpoint"),
    ),
    "region": (
        str,
        ("aws_region", "aws_default_region", "region", "region_name", "s3.region", "client.region"),
    ),
    "access_key": (str, ("aws_access_key_id", "access_key_id", "key", "s3.access-key-id")),
    "secret_key": (
        str,
        ("aws_secret_access_key", "secret_access_key", "secret", "s3.secret-access-key"),
    ),
    "session_token": (
        str,
        ("aws_session_token", "session_token", "aws_token", "token", "s3.session-token"),
    ),
    "is_anonymous": (_is_true, ("aws_skip_signature", "skip_signature", "anon", "s3.anonymous")),
    "is_virtual": (
        _is_true,
        (
            "aws_virtual_hosted_style_request",
            "virtual_hosted_style_request",
            "s3.force-virtual-addressing",
        ),
    ),
    "proxy": (str, ("proxy_url", "s3.proxy-uri")),
    "connect_timeout": (float, ("s3.connect-timeout",)),
    "request_timeout": (float, ("s3.request-timeout",)),
}
#: Options that other libraries need, and that change nothing here.
_NEEDLESS: Final = frozenset(
    {
        *("aws_allow_http", "allow_http", "aws_s3_allow_unsafe_rename", "allow_unsafe_rename"),
        *("aws_conditional_put", "conditional_put", "aws_ec2_metadata_disabled", "use_ssl"),
    }
)
_NAMES: Final = {name: of for of, (_, names) in _SETTINGS.items() for name in names}
#: Settings that may hold a password.
_SECRET: Final = frozenset({"access_key", "secret_key", "session_token", "proxy"})
_ELSEWHERE: Final = (
    "Azure takes AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN from the environment, Google Cloud "
    "Storage GOOGLE_APPLICATION_CREDENTIALS"
)


def storage_grant(paths: Paths, options: Mapping[str, object] | None) -> StoreGrant | None:
    """Return a grant that applies ``options`` to the objects at the paths, while it is referenced.

    Without options, the options of a given deltalake or pyiceberg table are used.  Returns None if
    nothing is set.  Raises PolicyError for an unknown option, and quotes no value in it.
    """
    if options is None:
        own = {name: it for name, it in options_of(paths).items() if name.lower() in _NAMES}
        settings = _settings(own)
    else:
        settings = _settings(options)
    if settings is None:
        return None
    places = [path for path in as_paths(paths) if is_object_uri(path)]
    for place in places:
        if object_uri(place).kind.arrow_name != "s3":
            raise PolicyError("storage_options are for S3 alone", hint=_ELSEWHERE, path=place)
    # The whole bucket: the log of a table may be above its files.
    buckets = dict.fromkeys(str(object_uri(place).at("")) for place in places)
    return StoreGrant(buckets, settings) if buckets else None


def _settings(options: Mapping[str, object]) -> S3Settings | None:
    found: dict[str, Any] = {}
    for name, value in options.items():
        lowered = str(name).lower()
        if lowered == "client_kwargs" and isinstance(value, Mapping):
            found |= _taken(value)
        elif lowered not in _NEEDLESS:
            found |= _taken({lowered: value})
    if ("access_key" in found) != ("secret_key" in found):
        missing = "access_key_id" if "secret_key" in found else "secret_access_key"
        raise PolicyError(
            f"storage_options has one key of a pair, and no aws_{missing}",
            hint=f"give aws_{missing} too, or neither of them; {_ELSEWHERE}",
        )
    return S3Settings(**found) if found else None


def _taken(options: Mapping[Any, object]) -> dict[str, Any]:
    found = {}
    for name, value in options.items():
        setting = _NAMES.get(str(name))
        if setting is None:
            raise PolicyError(
                f"storage_options has {name}, which is not taken",
                hint=f"names are those of Polars, such as {', '.join(list(_NAMES)[:1])}, "
                f"aws_region, aws_access_key_id, aws_secret_access_key; {_ELSEWHERE}",
            )
        if value is not None:
            found[setting] = _SETTINGS[setting][0](value)
    return found


def shared_grant(paths: Paths, options: Mapping[str, object]) -> StoreGrant | None:
    """Return the grant of :func:`storage_grant`. Its settings are sent to other machines unchanged.

    Raises PolicyError for a credential, because the engine that sends it could show it in a plan.
    """
    inner = options.get("client_kwargs")
    for name in (*options, *(inner if isinstance(inner, Mapping) else ())):
        if _NAMES.get(str(name).lower()) in _SECRET:
            raise _not_shared(f"storage_options has the credential {name}")
    grant = storage_grant(paths, options)
    if grant is not None and "@" in (grant.settings.endpoint or ""):
        raise _not_shared("the endpoint in storage_options has a password")
    return grant


def _not_shared(what: str) -> PolicyError:
    return PolicyError(
        f"{what}: credentials are not sent to executors",
        hint="leave it out: driver and executors take credentials from a role of their machines, "
        "the profile, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in their own environment",
    )


@contextmanager
def granted(paths: Paths, options: Mapping[str, object] | None) -> Iterator[None]:
    """Apply ``options`` to the objects at ``paths`` inside the block."""
    grant = storage_grant(paths, options)
    try:
        yield
    finally:
        del grant


def with_storage_options(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function honour ``storage_options``. The function's first argument must be paths."""

    @functools.wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        given: Any = options
        name = next((it for it in ("paths", "path", "files") if it in given), None)
        paths: Any = args[0] if args else given.get(name, ())
        wanted = given.get("storage_options")
        is_one = isinstance(paths, str | PathLike) or table_path(paths) is not None
        if wanted is not None and not is_one:
            # Listed once: the paths may come from a generator.
            paths = as_paths(paths)
            if not args:
                given[name] = paths
        first: Any = (paths, *args[1:]) if args else ()
        with granted(paths, wanted):
            return function(*first, **given)

    return call

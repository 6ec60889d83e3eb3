"""A policy in several files."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from secure_bloom.encryption.policy import KeyPolicy, draft_policy
from secure_bloom.encryption.policy_files import policy_files, read_policy
from secure_bloom.errors import PolicyError, SecureBloomError

HEAD = '[footer]\nkey = "k_footer"\n'


def files(folder: Path, **texts: str) -> Path:
    """Write texts to NAME.toml, folders before a `__`. Return the path of the first."""
    paths = [folder / f"{name.replace('__', '/')}.toml" for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    return paths[0]


def test_files_say_together_what_one_file_says(tmp_path: Path) -> None:
    parts = {
        "customers": '[tables."customers/*".columns.email]\nkey = "k_pii"\n',
        "orders": '[tables."orders/*".columns.iban]\nkey = "k_finance"\nbloom = true\n',
        "rest": '[columns.tenant]\n[classified]\nclear = ["day"]\n[keys.k_old]\n',
    }
    one = files(tmp_path, one=HEAD + "".join(parts.values()))
    include = 'include = ["teams/*.toml", "rest.toml"]\n'
    names = {"teams__a": parts["customers"], "teams__b": parts["orders"], "rest": parts["rest"]}
    several = files(tmp_path, several=include + HEAD, **names)
    loaded = KeyPolicy.load(several)
    whole = KeyPolicy.load(one)
    assert loaded.tables == whole.tables
    assert (loaded.columns, loaded.clear) == (whole.columns, whole.clear)
    assert loaded.older_keys == {"k_old"}
    assert [path.name for path in loaded.included] == ["a.toml", "b.toml", "rest.toml"]
    assert draft_policy(several) == (loaded, ())
    assert pickle.loads(pickle.dumps(loaded)) == loaded


def test_paths_begin_at_the_file_that_has_them(tmp_path: Path) -> None:
    path = files(
        tmp_path,
        a__policy='include = ["../b/kms.toml"]\n' + HEAD,
        b__kms='include = ["c/more.toml"]\n[kms]\nclient = "keyring"\nkeyring = "keys.json"\n',
        b__c__more='[columns.email]\nkey = "k_pii"\n',
    )
    policy = KeyPolicy.load(path)
    found = policy.keyring_path()
    assert found is not None
    assert found.resolve() == tmp_path / "b" / "keys.json"
    assert policy.own_key_for("email") == "k_pii"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"a": 'include = ["a.toml"]'}, "includes itself: a.toml -> a.toml"),
        (
            {"a": 'include = ["b.toml"]', "b": 'include = ["c.toml"]', "c": 'include = ["b.toml"]'},
            "includes itself: b.toml -> c.toml -> b.toml",
        ),
        ({"a": 'include = ["b.toml"]'}, "cannot be read"),
        ({"a": 'include = ["no/*.toml"]'}, "no file is at 'no/\\*.toml'"),
        ({"a": 'include = "b.toml"'}, "not a list of paths"),
        ({"a": 'include = ["b.toml"]', "b": "[kms"}, "is not TOML"),
        (
            {"a": f'include = ["b.toml"]\n{HEAD}', "b": HEAD},
            r"\[footer\] is in two files",
        ),
        (
            {"a": 'include = ["b.toml"]\n[columns.id]', "b": '[columns.id]\nkey = "k"'},
            r"'id' of \[columns\] is in two files",
        ),
        (
            {"a": 'include = ["b.toml"]\n[tables.t.columns.x]', "b": "[tables.t.columns.y]"},
            r"'t' of \[tables\] is in two files",
        ),
        ({"a": 'include = ["b.toml"]', "b": "[colums.id]"}, "'colums'"),
    ],
)
def test_what_is_no_policy(tmp_path: Path, texts: dict[str, str], message: str) -> None:
    with pytest.raises(PolicyError, match=message) as caught:
        KeyPolicy.load(files(tmp_path, **texts))
    assert caught.value.path is not None


@pytest.mark.parametrize(
    "mistake",
    [
        '[columns.email]\nkey = "k_pii"\nblom = true',
        '[tables."t".columns.email]\nkey = 3',
        '[classified]\nclear = "x"',
        "[keys.k_pii]\nretird = true",
    ],
)
def test_a_mistake_is_in_the_included_file_that_has_it(tmp_path: Path, mistake: str) -> None:
    path = files(tmp_path, a=f'include = ["c.toml", "b.toml"]\n{HEAD}', b=mistake, c="[columns.id]")
    with pytest.raises(PolicyError) as raised:
        KeyPolicy.load(path)
    assert raised.value.path == str(tmp_path / "b.toml")
    _, [problem] = draft_policy(path)
    assert problem.path == str(tmp_path / "b.toml")
    assert problem.message == raised.value.message


def test_a_file_that_two_files_include_counts_once(tmp_path: Path) -> None:
    texts = {"a": 'include = ["*.toml"]', "b": 'include = ["c.toml"]', "c": "[columns.id]"}
    assert list(KeyPolicy.load(files(tmp_path, **texts)).columns) == ["id"]


def test_includes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = {f"f{n}": f'include = ["f{n + 1}.toml"]' for n in range(30)}
    with pytest.raises(PolicyError, match="files deeper than"):
        read_policy(files(tmp_path / "deep", **deep))
    many = files(tmp_path / "many", a='include = ["p/*.toml"]')
    (tmp_path / "many" / "p").mkdir()
    for number in range(1_001):
        (tmp_path / "many" / "p" / f"{number}.toml").touch()
    with pytest.raises(PolicyError, match="more than 1,000 files"):
        read_policy(many)
    # No file alone is too large.
    large = {f"p__{n}": f"# {'x' * 400_000}\n" for n in range(5)}
    path = files(tmp_path / "large", a='include = ["p/*.toml"]', **large)
    read_policy(path)
    monkeypatch.setenv("SECURE_BLOOM_MEMORY", "1MiB")
    with pytest.raises(SecureBloomError, match="the policy with the files that it includes"):
        read_policy(path)


def test_patterns_that_mean_the_same_files_are_looked_up_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = files(tmp_path, a=f"include = {['*.toml', '[a-c].toml', 'b.toml'] * 40}", b="", c="")
    visited = list[Path]()
    resolve = Path.resolve

    def counted(self: Path, strict: bool = False) -> Path:
        visited.append(self)
        return resolve(self, strict)

    monkeypatch.setattr(Path, "resolve", counted)
    assert [it.name for it in policy_files(path)[1:]] == ["b.toml", "c.toml"]
    # The file itself is looked up for each pattern that means it.
    assert len(visited) < 20
    many = files(tmp_path / "many", a=f"include = {[f'{n}.toml' for n in range(1_001)]}")
    with pytest.raises(PolicyError, match="includes too much"):
        policy_files(many)

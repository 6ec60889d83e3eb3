# File descriptors and strings, not Path objects, throughout.
# ruff: noqa: PTH114, PTH118, PTH119
"""A new local file that gets its name when it is complete, or leaves nothing.

If the file system can do that, the file is built without a name (O_TMPFILE), so a kill leaves
nothing.  linkat(2) cannot replace a file, so the new file gets the temporary name
``.<name>.secure-bloom`` right before the rename.  On other file systems it has that name from the
start.  If the system can exchange two names, the temporary name and the target are exchanged, and
the old file is removed under the temporary name.  The writer locks the new file as long as it
lives, and its caller locks the old one.  A temporary file without a lock belongs to a dead writer,
and the next writer of that file removes it.  Until the caller widens its permissions, only the
owner can read it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from secure_bloom.errors import (
    FileChangedError,
    PolicyError,
    SecureBloomError,
    UnfinishedWriteError,
)
from secure_bloom.storage.local import identity_of
from secure_bloom.storage.locks import try_lock
from secure_bloom.storage.open_folder import OpenFolder, close, open_folder_of
from secure_bloom.storage.paths import fenced_parts, is_object_uri, local_path, shown_path
from secure_bloom.storage.write_permit import may_write

_NAME_MAX = 255
#: Errors of file systems without hard links: there only the lock on the source keeps writers apart.
NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK}

#: Errors of systems and file systems that cannot exchange two names.
_NO_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP}


def hidden_name(name: str, ending: str) -> str:
    """Return a name derived from ``name`` that Spark and ``find_files`` skip, of a legal length."""
    hidden = f".{name}.{ending}"
    if len(os.fsencode(hidden)) <= _NAME_MAX:
        return hidden
    import hashlib

    return f".{hashlib.sha256(os.fsencode(name)).hexdigest()}.{ending}"


def temporary_name(name: str) -> str:
    """Return the hidden name of a file under construction."""
    return hidden_name(name, "secure-bloom")


class StagedFile:
    """A file under construction in ``folder``, which is to become ``name`` there.

    Write to ``fd``, then call ``sync``, then ``publish`` or ``publish_new``.
    """

    def __init__(self, folder: OpenFolder, target: str) -> None:
        self._target = shown_path(target)
        self.folder = folder
        self.name = os.path.basename(target)
        self._temporary = temporary_name(self.name)
        self._named = False
        self._published = False
        self.fd = -1

    def create(self) -> None:
        """Create the empty file, after removing the leftover of a killed writer."""
        if not self.remove_stale():
            raise self._busy()
        with contextlib.suppress(OSError):
            self.fd = self._open_nameless()
        if self.fd >= 0:
            try_lock(self.fd)
            return
        self.fd = self._open_named()
        # Before we had the lock, another writer could take the file for a dead one's.  It holds the
        # lock while it removes the file, or has removed it.
        if try_lock(self.fd) is False or not self.folder.holds(self._temporary, self.fd):
            close(self.fd)
            self.fd = -1
            raise self._busy()
        self._named = True

    def sync(self) -> None:
        """Make the content durable."""
        # The bytes are synced before the name is given.  Else a power cut could leave the rename
        # without the bytes, and the target would be an empty file.
        os.fsync(self.fd)

    def give_name(self) -> None:
        """Make the file visible under its temporary name."""
        if not self._named:
            self._take(self._temporary, lambda: self.folder.give_name(self.fd, self._temporary))
            self._named = True

    def publish(self, over: tuple[object, ...] | None = None) -> None:
        """Put the file in the place of its target, durably.

        ``over`` is the identity of the file that may be replaced.  Raises FileChangedError, and
        changes nothing, if that file was removed or replaced by another program.
        """
        self.give_name()
        if over is None or not self._exchange(over):
            self._take(self.name, lambda: self.folder.rename(self._temporary, self.name))
        self._named, self._published = False, True
        self._sync_folder()

    def publish_new(self) -> None:
        """Give the file a free name, durably. Raises FileChangedError if the name is taken."""
        try:
            self.publish_if_absent()
        except OSError as exc:
            if exc.errno not in NO_LINKS:
                raise
            self.publish()

    def publish_if_absent(self, *, is_durable: bool = True) -> None:
        """Give the file a free name, as :meth:`publish_new` does, on file systems with hard links.

        On others it raises an OSError, because two writers could both believe that they created
        the file. Unless ``is_durable``, the new name is not durable until the caller syncs the
        folder.
        """
        try:
            # Unlike a rename, a link takes no other file's place.
            self._take(self.name, self._link)
        except OSError as exc:
            if self.folder.status(self.name) is not None:
                raise FileChangedError("the file is there already", path=self._target) from exc
            raise
        # What the system refuses now is removed by the next writer: the new file is in its place.
        with contextlib.suppress(OSError):
            # The next writer may have removed the name as a leftover, and given it to its own file.
            if self._named and self.folder.holds(self._temporary, self.fd):
                self.folder.unlink(self._temporary)
        if is_durable:
            self._sync_folder()

    def _exchange(self, over: tuple[object, ...]) -> bool:
        """Exchange names with the file ``over`` and remove it.

        Return False if names cannot be exchanged. A rename would bring back a file that another
        program has just removed, and would remove a file that another program has just put there.
        An exchange shows which file was replaced.
        """
        try:
            self._take(self.name, lambda: self.folder.exchange(self._temporary, self.name))
        except FileNotFoundError as exc:
            raise FileChangedError("the file is gone", path=self._target) from exc
        except OSError as exc:
            if exc.errno in _NO_EXCHANGE:
                return False
            raise
        try:
            found = self.folder.status(self._temporary)
        except OSError:
            self._exchange_back()
            raise
        if found is not None and identity_of(found) != over:
            self._exchange_back()
            raise FileChangedError(
                "the file was changed after it was read",
                hint="another program writes here; run again when it is done",
                path=self._target,
            )
        self._remove_old()
        return True

    def _remove_old(self) -> None:
        try:
            self.folder.unlink(self._temporary)
        except OSError:
            try:
                self.folder.unlink(self._temporary)
            except OSError as exc:
                raise UnfinishedWriteError(
                    f"the new file is in its place, but the old one stays as {self._temporary}: "
                    f"{(exc.strerror or 'it failed').lower()}",
                    hint="check the disk, then run again: the next run removes it",
                ) from exc

    def _exchange_back(self) -> None:
        """Undo an exchange: the file of another program gets its name back."""
        # From here on only our own file may be removed.
        self._named = False
        with contextlib.suppress(FileNotFoundError):
            self.folder.exchange(self._temporary, self.name)
            if not self.folder.holds(self._temporary, self.fd):
                # That program has replaced its file once more, and ours with it.
                self.folder.exchange(self._temporary, self.name)
        # What has the temporary name now is our file, or an older one of that program.
        self.folder.unlink(self._temporary)

    def discard(self) -> None:
        """Remove the unfinished file. After ``publish`` the new file stays."""
        # Errors here would hide the one that led here; the next writer removes what stays.
        # The name is removed only while it is ours: it may be another writer's file by now.
        with contextlib.suppress(OSError, PolicyError):
            if self.fd < 0:
                # Ctrl-C may have come after the system call and before the line that notes it.
                self.remove_stale()
            elif not self._published and self._is_ours():
                self.folder.unlink(self._temporary)
        if self.fd >= 0:
            close(self.fd)  # only now: this gives the lock back
        self.fd = -1

    def _is_ours(self) -> bool:
        """Return whether the temporary name belongs to this file, or to the file it replaced."""
        return self.folder.holds(self._temporary, self.fd) or (
            self._named and self.folder.holds(self.name, self.fd)
        )

    def _link(self) -> None:
        self.folder.give_name(self.fd, self.name, known_as=self._temporary if self._named else None)

    def _take(self, name: str, step: Callable[[], None]) -> None:
        """Run a step that gives the file a name.

        Ignore an error of the step if the file has the name afterwards.
        """
        try:
            step()
        except OSError as exc:
            # A server may have done what it reports as failed: link(2), rename(2) of NFS.
            if self.folder.holds(name, self.fd):
                return
            if isinstance(exc, FileExistsError) and name == self._temporary:
                raise self._busy() from exc
            raise

    def _sync_folder(self) -> None:
        # A name is content of its folder: syncing the file does not make it durable.
        try:
            self.folder.sync()
        except OSError as exc:
            raise UnfinishedWriteError(
                "the new file is in its place, but the system could not confirm that it will "
                f"outlast a power cut: {(exc.strerror or 'it failed').lower()}",
                hint="check the disk, then run again",
            ) from exc

    def _open_nameless(self) -> int:
        return self.folder.open_nameless()

    def _open_named(self) -> int:
        try:
            return self.folder.open(self._temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        except FileExistsError as exc:
            raise self._busy() from exc

    def remove_stale(self) -> bool:
        """Remove the file of a dead writer. Return whether the temporary name is free now."""
        found = self.folder.status(self._temporary)
        if found is None:
            return True
        # A folder or a pipe of that name was not made by us, and is not ours to remove.
        if not stat.S_ISREG(found.st_mode):
            raise PolicyError(
                f"{self._temporary}, the name of its temporary file, is taken by something that is "
                "not a file",
                hint="find out who made it, remove it, and run again",
                path=self._target,
            )
        try:
            # Opened to be locked: only the kernel knows whether its writer still lives.
            fd = self.folder.open(self._temporary, os.O_RDONLY)
        except FileNotFoundError:
            return True
        try:
            return self._remove_dead(fd)
        finally:
            close(fd)

    def _remove_dead(self, fd: int) -> bool:
        # The target itself under a second name: its writer was killed between link and unlink.
        # We hold the lock of the target where it is what we rewrite, so none can be taken here.
        finished = self.folder.holds(self.name, fd)
        if not finished and not try_lock(fd):
            return False
        # Another writer may have removed it, and made its own, before we had the lock.
        if not self.folder.holds(self._temporary, fd):
            return False
        self.folder.unlink(self._temporary)
        return True

    def _busy(self) -> FileChangedError:
        return FileChangedError(
            "another process is writing this file",
            hint=f"if no process is, delete {self._temporary} and run again",
            path=self._target,
        )


def remove_leftover(path: str) -> None:
    """Remove the temporary file that a killed writer of ``path`` left: it may have the old content.

    Writers do this themselves.  Call it for a file that needs no writing.
    """
    if is_object_uri(path):
        return
    target, is_fenced = path, fenced_parts(path)
    if not is_fenced:
        target = local_path(path)
        # Its own folder may be reached through links. Only a link has its file in another one.
        target = os.path.realpath(target) if os.path.islink(target) else target
    folder, name = os.path.split(target)
    # What the system refuses now is removed by a later run.
    with contextlib.suppress(OSError, SecureBloomError):
        if os.path.lexists(os.path.join(folder, temporary_name(name))):
            target = target if is_fenced else os.path.realpath(target)
            with open_folder_of(target) as opened, may_write():
                StagedFile(opened, target).remove_stale()
                opened.sync()


@contextmanager
def staged_file(target: str) -> Iterator[StagedFile]:
    """Yield a new file that is to replace ``target``, a real path or one of ``without_links``.

    It is removed unless published.
    """
    with open_folder_of(target, make=True) as folder:
        staged = StagedFile(folder, target)
        try:
            staged.create()
            yield staged
        finally:
            staged.discard()

"""Receives bytes from sockets, in one thread per socket, while another thread processes them.

The unprocessed bytes are bounded: beyond that a stream waits (TCP slows down its sender),
datagrams are counted and dropped.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from queue import Empty, Full, Queue

from engine.sources.live import BATCH_ROWS, LINGER_S, SourceUnavailable

RECEIVE_BYTES = 65_536
WAITING_PARTS = 20_000
"""Parts (the bytes of one call of recv) that wait to be processed; a part of a fast stream has 64
KB, a datagram one message."""
WAITING_BYTES = 64 << 20
QUIET_S = 0.2
KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""A dead peer is detected after two minutes (in seconds, seconds, and probes)."""
MOST_PEERS = 64
IDLE_S = 60.0
"""At the limit of peers, one that has been silent for this long is replaced by a new one."""
BUFFER_BYTES = 4 << 20
"""The kernel's receive buffer for a socket of datagrams."""


@dataclass(frozen=True)
class ReceivedBytes:
    """Bytes from one peer, and their time of arrival, in ms. `ended`: the peer's last."""

    peer: Hashable
    data: bytes
    at: int
    ended: bool = False


class Arrivals:
    """The parts of all peers in the order of their arrival."""

    def __init__(self) -> None:
        self._queue: Queue[ReceivedBytes] = Queue(WAITING_PARTS)
        self._bytes = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._numbers = 0
        self.failure: str | None = None
        self.dropped = 0

    def follow(self, connection: socket.socket) -> None:
        """Reads a connection until its end; that end is a failure."""
        connection.settimeout(QUIET_S)
        _keep_alive(connection)
        self._start(connection, self._read_stream, connection, 0)

    def accept(self, server: socket.socket) -> None:
        """Takes connections and reads them all."""
        server.setblocking(False)
        self._start(server, self._serve, server)

    def datagrams(self, receiver: socket.socket) -> None:
        """Takes datagrams, each of them from its sender."""
        receiver.settimeout(QUIET_S)
        with contextlib.suppress(OSError):
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        self._start(receiver, self._receive, receiver)

    def taken(self) -> Iterator[list[ReceivedBytes]]:
        """Yields what arrived within LINGER_S, repeatedly. Raises SourceUnavailable when the peer
        has ended and all of it was taken."""
        while True:
            parts = self._some()
            if not parts and self.failure is not None and self._queue.empty():
                raise SourceUnavailable(self.failure)
            yield parts

    def close(self) -> None:
        """Ends the threads; they look up every QUIET_S."""
        self._over.set()
        for one in self._sockets:
            one.close()
        for thread in self._threads:
            thread.join(5.0)

    def _some(self) -> list[ReceivedBytes]:
        parts: list[ReceivedBytes] = []
        end = time.monotonic() + LINGER_S
        size = 0
        while len(parts) < BATCH_ROWS and size < BATCH_ROWS * 80 and (left := end - time.monotonic()) > 0:
            try:
                part = self._queue.get(timeout=left)
            except Empty:
                break
            parts.append(part)
            size += len(part.data)
            with self._lock:
                self._bytes -= len(part.data)
        return parts

    def _start(self, one: socket.socket, work: object, *arguments: object) -> None:
        self._sockets.append(one)
        thread = threading.Thread(target=self._guarded, args=(work, *arguments), daemon=True, name="arrivals")
        self._threads.append(thread)
        thread.start()

    def _guarded(self, work: object, *arguments: object) -> None:
        try:
            work(*arguments)  # type: ignore[operator]
        except OSError as error:
            if not self._over.is_set():
                self.failure = f"The connection was lost: {error}"

    def _put(self, part: ReceivedBytes) -> None:
        """Waits while too much has not been worked on."""
        while not self._over.is_set():
            if self._bytes < WAITING_BYTES:
                try:
                    self._queue.put(part, timeout=QUIET_S)
                except Full:
                    continue
                with self._lock:
                    self._bytes += len(part.data)
                return
            time.sleep(0.01)

    def _read_stream(self, connection: socket.socket, peer: Hashable) -> None:
        while not self._over.is_set():
            try:
                data = connection.recv(RECEIVE_BYTES)
            except TimeoutError:
                continue
            if not data:
                self._put(ReceivedBytes(peer, b"", _now(), ended=True))
                self.failure = "The other side ended the connection."
                return
            self._put(ReceivedBytes(peer, data, _now()))

    def _receive(self, receiver: socket.socket) -> None:
        while not self._over.is_set():
            try:
                data, sender = receiver.recvfrom(RECEIVE_BYTES)
            except TimeoutError:
                continue
            part = ReceivedBytes(sender[:2], data if data.endswith(b"\n") else data + b"\n", _now())
            if self._bytes >= WAITING_BYTES or self._queue.full():
                self.dropped += 1
                continue
            self._put(part)

    def _serve(self, server: socket.socket) -> None:
        chosen = selectors.DefaultSelector()
        chosen.register(server, selectors.EVENT_READ)
        peers: OrderedDict[socket.socket, _Peer] = OrderedDict()
        try:
            while not self._over.is_set():
                for key, _ in chosen.select(QUIET_S):
                    if key.fileobj is server:
                        self._accept_peer(server, chosen, peers)
                    elif key.fileobj in peers:
                        self._receive_from(key.fileobj, chosen, peers)  # type: ignore[arg-type]
        finally:
            chosen.close()
            for one in peers:
                one.close()

    def _accept_peer(self, server: socket.socket, chosen: selectors.BaseSelector, peers: OrderedDict[socket.socket, _Peer]) -> None:
        try:
            peer, _ = server.accept()
        except OSError:
            return
        if len(peers) >= MOST_PEERS:
            oldest, heard = next(iter(peers.items()))
            if time.monotonic() - heard.at < IDLE_S:
                peer.close()
                return
            self._remove_peer(oldest, chosen, peers)
        peer.setblocking(False)
        _keep_alive(peer)
        self._numbers += 1
        peers[peer] = _Peer(self._numbers, time.monotonic())
        chosen.register(peer, selectors.EVENT_READ)

    def _receive_from(self, peer: socket.socket, chosen: selectors.BaseSelector, peers: OrderedDict[socket.socket, _Peer]) -> None:
        try:
            data = peer.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._remove_peer(peer, chosen, peers)
            return
        heard = peers[peer]
        self._put(ReceivedBytes(heard.number, data, _now()))
        # The one that was silent for longest comes first.
        heard.at = time.monotonic()
        peers.move_to_end(peer)

    def _remove_peer(self, peer: socket.socket, chosen: selectors.BaseSelector, peers: OrderedDict[socket.socket, _Peer]) -> None:
        self._put(ReceivedBytes(peers.pop(peer).number, b"", _now(), ended=True))
        chosen.unregister(peer)
        peer.close()


@dataclass
class _Peer:
    """A peer that connected to us: its number, and when it was heard last."""

    number: int
    at: float


def _keep_alive(connection: socket.socket) -> None:
    """Probes now and then whether the other side is alive: one that lost power closes no
    connection, and would be waited for forever."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEP_ALIVE.items():
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


@dataclass
class Lines:
    """Whole lines out of the bytes of one peer; of one that is too long
    only the beginning, once."""

    longest: int
    _rest: bytearray = field(default_factory=bytearray)
    _skipping: bool = False

    def of(self, part: ReceivedBytes) -> Iterator[bytes]:
        """The lines that the part ends."""
        self._rest += part.data
        if part.ended and self._rest:
            self._rest += b"\n"
        *whole, rest = bytes(self._rest).split(b"\n")
        for line in whole:
            if not self._skipping:
                yield line[: self.longest]
            self._skipping = False
        if len(rest) > self.longest:
            if not self._skipping:
                yield rest[: self.longest]
            self._skipping, rest = True, b""
        self._rest = bytearray(rest)


def _now() -> int:
    return time.time_ns() // 1_000_000

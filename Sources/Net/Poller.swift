internal import CThicketNet
import Glibc
import ThicketPlatform

/// epoll, level-triggered. Each descriptor is registered with a token of 64 bits.
struct Poller: ~Copyable {
    /// Most descriptors reported by one wait: merely setting aside one that must wait takes one or two microseconds.
    static let eventsMax = 128

    private let descriptor: Int32
    private let events: UnsafeMutableRawPointer

    init() throws(NetError) {
        descriptor = thicket_epoll_create()
        guard descriptor >= 0 else { throw NetError.setup(call: "epoll_create1", reason: SystemError.reason(errno)) }
        events = .allocate(byteCount: thicket_epoll_event_size() * Self.eventsMax, alignment: 16)
    }

    deinit {
        events.deallocate()
        _ = Glibc.close(descriptor)
    }

    /// - Returns: whether the kernel accepted it.
    func add(_ fd: Int32, reads: Bool, writes: Bool, token: UInt64) -> Bool {
        thicket_epoll_add(descriptor, fd, thicket_epoll_interest(reads ? 1 : 0, writes ? 1 : 0), token) == 0
    }

    /// - Parameter once: epoll always reports a broken connection; with `once` it does so once, not at each wait.
    func change(_ fd: Int32, reads: Bool, writes: Bool, once: Bool = false, token: UInt64) {
        let interest = thicket_epoll_interest(reads ? 1 : 0, writes ? 1 : 0) | (once ? thicket_epoll_once() : 0)
        _ = thicket_epoll_change(descriptor, fd, interest, token)
    }

    func remove(_ fd: Int32) { _ = thicket_epoll_remove(descriptor, fd) }

    /// Waits for events.
    ///
    /// - Parameter milliseconds: longest wait; negative waits without a limit.
    /// - Returns: number of events; 0 after a timeout or a signal.
    func wait(milliseconds: Int32) -> Int {
        Int(max(0, thicket_epoll_wait(descriptor, events, Int32(Self.eventsMax), milliseconds)))
    }

    struct Event {
        let token: UInt64
        let isReadable: Bool
        let isWritable: Bool
        /// The connection failed, or both its directions are shut.
        let isBroken: Bool
    }

    subscript(index: Int) -> Event {
        let bits = thicket_epoll_events(events, Int32(index))
        return Event(
            token: thicket_epoll_token(events, Int32(index)), isReadable: thicket_epoll_is_readable(bits) != 0,
            isWritable: thicket_epoll_is_writable(bits) != 0, isBroken: thicket_epoll_is_broken(bits) != 0)
    }
}

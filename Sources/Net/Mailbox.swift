internal import CThicketNet
import Glibc
import Synchronization
import ThicketPlatform

/// Wakes the loop from another thread, with one write per wake-up, however many threads signal.
@usableFromInline
final class Wakeup: Sendable {
    let descriptor: Int32
    private let isRung = Atomic<Bool>(false)

    init() throws(NetError) {
        descriptor = thicket_eventfd()
        guard descriptor >= 0 else { throw NetError.setup(call: "eventfd", reason: SystemError.reason(errno)) }
    }

    deinit { _ = Glibc.close(descriptor) }

    @usableFromInline func ring() {
        guard !isRung.exchange(true, ordering: .acquiringAndReleasing) else { return }
        var one: UInt64 = 1
        _ = Glibc.write(descriptor, &one, 8)
    }

    /// Resets the signal. Must be called before the mailboxes are emptied: a later post then signals again.
    func answer() {
        var count: UInt64 = 0
        _ = Glibc.read(descriptor, &count, 8)
        isRung.store(false, ordering: .sequentiallyConsistent)
    }
}

/// Carries values from any thread to the loop's thread, in order; only the first of a batch wakes the loop.
///
/// It has no bound of its own: each sender bounds what it has in progress (the shard its group, a reader its request).
public final class Mailbox<Message: Sendable>: Sendable {
    @usableFromInline let waiting = Mutex<[Message]>([])
    @usableFromInline let wakeup: Wakeup

    init(wakeup: Wakeup) { self.wakeup = wakeup }

    /// Posts one message. After the loop has ended it is never read.
    @inlinable public func post(_ message: Message) {
        let wasEmpty = waiting.withLock { waiting in
            waiting.append(message)
            return waiting.count == 1
        }
        if wasEmpty { wakeup.ring() }
    }

    /// Posts several messages that are handled in one batch.
    @inlinable public func post(contentsOf messages: [Message]) {
        guard !messages.isEmpty else { return }
        let wasEmpty = waiting.withLock { waiting in
            defer { waiting.append(contentsOf: messages) }
            return waiting.isEmpty
        }
        if wasEmpty { wakeup.ring() }
    }

    @inlinable package func takeAll() -> [Message] {
        waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
    }
}

/// What other threads may hold of a loop.
public struct LoopHandle: Sendable {
    @usableFromInline let work: Mailbox<@Sendable (EventLoop) -> Void>

    /// Runs `work` on the loop's thread soon. After the loop has ended it is dropped.
    @inlinable public func post(_ work: @escaping @Sendable (EventLoop) -> Void) { self.work.post(work) }
}

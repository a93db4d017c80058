import Synchronization
import ThicketPlatform

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Ctrl-C and SIGTERM as events, for commands that run until then. A second signal ends the program at once.
package enum Interrupts {
    /// Write end of the pipe that wakes the handler; -1 before `stream`.
    private static let writer: Atomic<Int32> = Atomic(-1)

    /// Yields one element for the first signal, then ends.
    package static func stream() -> AsyncStream<Int32> {
        let (stream, continuation) = AsyncStream.makeStream(of: Int32.self)
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            continuation.finish()
            return stream
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        writer.store(ends[1], ordering: .sequentiallyConsistent)
        let reader: Int32 = ends[0]
        OwnThread.detachedOrHere("signals") {
            var byte: UInt8 = 0
            while read(reader, &byte, 1) < 0, errno == EINTR {}
            continuation.yield(Int32(byte))
            continuation.finish()
        }
        _ = signal(SIGINT, interrupted)
        _ = signal(SIGTERM, interrupted)
        return stream
    }

    /// Ends the stream without a signal.
    package static func release() { wakeUp(0) }

    private static func wakeUp(_ byte: UInt8) {
        var byte: UInt8 = byte
        _ = write(writer.load(ordering: .sequentiallyConsistent), &byte, 1)
    }

    /// A signal handler: only async-signal-safe calls.
    fileprivate static func wake(_ number: Int32) {
        _ = signal(number, SIG_DFL)
        wakeUp(UInt8(truncatingIfNeeded: number))
    }
}

private func interrupted(_ number: Int32) { Interrupts.wake(number) }

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A thread that belongs to one part of a program, with its name in `ps` and debuggers.
///
/// Work that may block (SQLite, a slow socket, a child process) runs on such threads and never on the shared pool,
/// which has only as many threads as the machine has cores.
package struct OwnThread: Sendable {
    private let handle: Handle

    /// The kernel gave no thread.
    package struct Refused: Error {
        /// The system's error number.
        package let code: Int32
    }

    /// Starts a thread. It ends when `body` returns. The process ends when the kernel gives no thread.
    /// - Parameters:
    ///   - name: up to 15 bytes, the kernel's limit.
    ///   - stackBytes: the thread's stack; only touched pages use memory.
    package init(_ name: String, stackBytes: Int = 4 << 20, _ body: @escaping @Sendable () -> Void) {
        do throws(Refused) {
            handle = try Self.start(name, stackBytes, body)
        } catch {
            preconditionFailure("the kernel gave no thread for '\(name)' (error \(error.code))")
        }
    }

    /// Starts a thread that no other waits for.
    /// - Throws: `Refused` when the kernel gives no thread; `body` is not called then.
    package static func detached(
        _ name: String, stackBytes: Int = 4 << 20, _ body: @escaping @Sendable () -> Void
    ) throws(Refused) {
        pthread_detach(try start(name, stackBytes, body).thread)
    }

    /// Starts a thread that no other waits for; runs `body` on the calling thread when the kernel gives none.
    package static func detachedOrHere(_ name: String, _ body: @escaping @Sendable () -> Void) {
        do throws(Refused) { try detached(name, stackBytes: 8 << 20, body) } catch { body() }
    }

    /// Runs blocking code on a thread of its own while a task waits for the result; on the calling thread when the
    /// kernel gives none.
    package static func run<Value: Sendable>(_ name: String, _ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { (continuation: CheckedContinuation<Value, Never>) in
            detachedOrHere(name) { continuation.resume(returning: body()) }
        }
    }

    /// Waits until the thread has ended. To be called at most once.
    package func join() { pthread_join(handle.thread, nil) }

    /// Lowers the priority of the calling thread only, for machines with more work than cores.
    /// - Parameter niceness: 0...19, as in the kernel.
    package static func yieldToOthers(by niceness: Int32) {
        #if !canImport(Darwin)
            // On Linux 0 is the calling thread; on Apple platforms it would be the process.
            _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, niceness)
        #endif
    }

    /// Yields the calling thread's core to other threads that are ready.
    package static func yield() { _ = sched_yield() }

    /// `@unchecked`: the handle never changes, and the system lets any thread use it.
    private struct Handle: @unchecked Sendable {
        let thread: pthread_t
    }

    private static func start(
        _ name: String, _ stackBytes: Int, _ body: @escaping @Sendable () -> Void
    ) throws(Refused) -> Handle {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, stackBytes)
        let box = Unmanaged<Body>.passRetained(Body(name, body))
        #if canImport(Darwin)
            var made: pthread_t?
            let result = pthread_create(&made, &attributes, { runThread($0) }, box.toOpaque())
            let thread = made
        #else
            var made = pthread_t()
            let result = pthread_create(&made, &attributes, runThread, box.toOpaque())
            let thread: pthread_t? = made
        #endif
        guard result == 0, let thread else {
            box.release()
            throw Refused(code: result)
        }
        return Handle(thread: thread)
    }

    fileprivate final class Body: Sendable {
        let name: String
        let work: @Sendable () -> Void
        init(_ name: String, _ work: @escaping @Sendable () -> Void) {
            self.name = name
            self.work = work
        }
    }
}

/// A named function, not a closure: a closure would inherit the actor isolation of its context.
private func runThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let context else { return nil }
    let body = Unmanaged<OwnThread.Body>.fromOpaque(context).takeRetainedValue()
    name(body.name)
    body.work()
    return nil
}

/// Gives the calling thread its name.
private func name(_ name: String) {
    #if canImport(Darwin)
        _ = pthread_setname_np(name)
    #else
        // pthread_setname_np is a GNU extension that Glibc's module does not show.
        let comm = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
        guard comm >= 0 else { return }
        let bytes: [UInt8] = Array(name.utf8.prefix(15))
        _ = write(comm, bytes, bytes.count)
        close(comm)
    #endif
}

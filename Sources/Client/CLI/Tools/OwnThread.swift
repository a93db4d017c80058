#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Runs blocking code (waiting for a child process or a signal) on a dedicated thread: in the shared pool, which has as
/// many threads as the machine has cores, it would stall unrelated tasks.
func onOwnThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { (continuation: CheckedContinuation<Value, Never>) in
        startThread { continuation.resume(returning: body()) }
    }
}

/// Starts a thread that ends with `body`.
func startThread(_ body: @escaping @Sendable () -> Void) {
    let held = Unmanaged.passRetained(ThreadBody(body)).toOpaque()
    var thread = pthread_t()
    guard pthread_create(&thread, nil, threadMain, held) == 0 else {
        // No more threads are available: run it on this one.
        Unmanaged<ThreadBody>.fromOpaque(held).takeRetainedValue().run()
        return
    }
    pthread_detach(thread)
}

private final class ThreadBody: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}

/// A named function, not a closure: a closure would inherit the actor isolation of its context.
private func threadMain(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let context else { return nil }
    Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue().run()
    return nil
}

import Synchronization

/// OpenSSL's contexts that are prepared for one key: a call takes one out of the pool, or makes one, and returns it. So
/// several threads use one key at the same time without waiting for each other.
final class ContextPool: Sendable {
    /// Contexts kept for the next calls: the number of threads that use a key concurrently on most machines.
    private static var idleMax: Int { 4 }

    private struct Idle: @unchecked Sendable {
        // Accessed only under the lock of their `Mutex`; a caller that takes a context out is its only user.
        var objects = [OpaquePointer]()
    }

    private let idle = Mutex<Idle>(Idle())
    private let free: @Sendable (OpaquePointer) -> Void

    /// - Parameter free: frees a context with OpenSSL, which overwrites the key material in it.
    init(free: @escaping @Sendable (OpaquePointer) -> Void) { self.free = free }

    deinit { idle.withLock { $0.objects.forEach(free) } }

    /// - Returns: nil when the pool is empty; the caller then makes one.
    func take() -> OpaquePointer? { idle.withLock { Box(pointer: $0.objects.popLast()) }.pointer }

    func give(_ object: OpaquePointer) {
        let box = Box(pointer: object)
        let isKept = idle.withLock { idle in
            guard idle.objects.count < Self.idleMax, let object = box.pointer else { return false }
            idle.objects.append(object)
            return true
        }
        if !isKept { free(object) }
    }

    private struct Box: @unchecked Sendable {
        // Passed from one owner to the next.
        let pointer: OpaquePointer?
    }
}

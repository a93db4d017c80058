import Synchronization

/// OpenSSL's objects that are prepared for one key, for whoever is inside: a call takes one out, or makes one, and
/// gives it back. So several threads use one key at once, and none waits for another.
final class ContextPool: Sendable {
    /// Objects kept for the next call: as many as threads are inside at once on most machines.
    private static var idleMax: Int { 4 }

    private struct Idle: @unchecked Sendable {
        // Touched under the lock of their `Mutex` only; who takes an object out has it alone.
        var objects = [OpaquePointer]()
    }

    private let idle = Mutex<Idle>(Idle())
    private let free: @Sendable (OpaquePointer) -> Void

    /// - Parameter free: gives an object back to OpenSSL, which overwrites what it had of a key.
    init(free: @escaping @Sendable (OpaquePointer) -> Void) { self.free = free }

    deinit { idle.withLock { $0.objects.forEach(free) } }

    /// - Returns: nil when there is none: then the caller makes one.
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
        // On its way from one owner to the next.
        let pointer: OpaquePointer?
    }
}

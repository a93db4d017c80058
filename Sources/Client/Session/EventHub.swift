internal import ThicketProtocol

/// Streams of one kind, each reader with its own bounded buffer. A reader that falls behind is told how much it missed.
///
/// Used on the engine's thread only.
struct EventHub<Element: Sendable> {
    private struct Reader {
        let continuation: AsyncStream<Element>.Continuation
        var missed = 0
    }

    private var readers = [Reader]()
    /// Makes what a slow reader gets in place of what it missed; nil: nothing is told.
    private let overrun: (@Sendable (_ missed: Int) -> Element)?

    init(overrun: (@Sendable (_ missed: Int) -> Element)?) { self.overrun = overrun }

    var isEmpty: Bool { readers.isEmpty }
    /// Somebody missed something and does not know yet.
    var hasOverrun: Bool { readers.contains { $0.missed > 0 } }

    /// There is a reader that knows what it missed.
    var canOffer: Bool { readers.contains { $0.missed == 0 } }

    mutating func add(_ continuation: AsyncStream<Element>.Continuation) {
        readers.append(Reader(continuation: continuation))
    }

    /// - Returns: whether a reader's buffer took it. Who had no room will be told that something was missed, but never
    ///   has it.
    @discardableResult
    mutating func yield(_ element: Element) -> Bool {
        var isTaken = false
        for index in readers.indices.reversed() {
            if readers[index].missed > 0, !admit(index) { continue }
            switch readers[index].continuation.yield(element) {
            case .enqueued: isTaken = true
            case .terminated: readers.remove(at: index)
            case .dropped: if overrun != nil { readers[index].missed += 1 }
            @unknown default: break
            }
        }
        return isTaken
    }

    /// Gives readers that know what they missed something that is kept elsewhere until one of them has it: for who has
    /// no room it does not count as missed.
    ///
    /// - Returns: whether a reader's buffer took it.
    mutating func offer(_ element: Element) -> Bool {
        var isTaken = false
        for index in readers.indices.reversed() where readers[index].missed == 0 {
            switch readers[index].continuation.yield(element) {
            case .enqueued: isTaken = true
            case .terminated: readers.remove(at: index)
            case .dropped: break
            @unknown default: break
            }
        }
        return isTaken
    }

    /// Tells the newest reader alone, as it begins. What it has no room for counts as missed.
    mutating func greet(_ element: Element) {
        guard let index: Int = readers.indices.last else { return }
        if readers[index].missed > 0 { return readers[index].missed += 1 }
        if case .dropped = readers[index].continuation.yield(element), overrun != nil { readers[index].missed += 1 }
    }

    /// Tells readers that have room again what they missed.
    mutating func settle() {
        for index in readers.indices.reversed() where readers[index].missed > 0 {
            _ = admit(index, counting: false)
        }
    }

    /// True when the reader at `index` knows what it missed and can take more.
    private mutating func admit(_ index: Int, counting: Bool = true) -> Bool {
        guard let overrun else { return true }
        switch readers[index].continuation.yield(overrun(readers[index].missed)) {
        case .enqueued:
            readers[index].missed = 0
            return true
        case .terminated:
            readers.remove(at: index)
            return false
        default:
            if counting { readers[index].missed += 1 }
            return false
        }
    }

    mutating func finish() {
        for reader in readers { reader.continuation.finish() }
        readers = []
    }
}

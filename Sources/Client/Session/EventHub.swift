internal import ThicketProtocol

/// The streams of one kind of event. Each reader has its own bounded buffer; a reader that falls behind is told how
/// many events it missed.
///
/// Used on the engine's thread only.
package struct EventHub<Element: Sendable> {
    private struct Reader {
        let continuation: AsyncStream<Element>.Continuation
        var missed = 0
    }

    private var readers = [Reader]()
    /// Makes the event that reports missed events to a slow reader; nil: nothing is reported.
    private let overrun: (@Sendable (_ missed: Int) -> Element)?

    package init(overrun: (@Sendable (_ missed: Int) -> Element)?) { self.overrun = overrun }

    package var isEmpty: Bool { readers.isEmpty }
    /// Whether a reader missed events and has not been told yet.
    package var hasOverrun: Bool { readers.contains { $0.missed > 0 } }

    /// Whether a reader exists that has no unreported misses.
    var canOffer: Bool { readers.contains { $0.missed == 0 } }

    package mutating func add(_ continuation: AsyncStream<Element>.Continuation) {
        readers.append(Reader(continuation: continuation))
    }

    /// Gives an element to all readers. A reader without room misses it for good; it is told later that it missed
    /// something.
    ///
    /// - Returns: whether a reader's buffer took it.
    @discardableResult
    package mutating func yield(_ element: Element) -> Bool {
        var isEnqueued = false
        for index in readers.indices.reversed() {
            if readers[index].missed > 0, !admit(index) { continue }
            switch readers[index].continuation.yield(element) {
            case .enqueued: isEnqueued = true
            case .terminated: readers.remove(at: index)
            case .dropped: if overrun != nil { readers[index].missed += 1 }
            @unknown default: break
            }
        }
        return isEnqueued
    }

    /// Gives an element to readers without unreported misses. The caller keeps the element until a reader takes it, so
    /// a reader without room does not count it as missed.
    ///
    /// - Returns: whether a reader's buffer took it.
    mutating func offer(_ element: Element) -> Bool {
        var isEnqueued = false
        for index in readers.indices.reversed() where readers[index].missed == 0 {
            switch readers[index].continuation.yield(element) {
            case .enqueued: isEnqueued = true
            case .terminated: readers.remove(at: index)
            case .dropped: break
            @unknown default: break
            }
        }
        return isEnqueued
    }

    /// Gives an element to the newest reader only, when it starts. Without room, the element counts as missed.
    mutating func greet(_ element: Element) {
        guard let index = readers.indices.last else { return }
        if readers[index].missed > 0 { return readers[index].missed += 1 }
        if case .dropped = readers[index].continuation.yield(element), overrun != nil { readers[index].missed += 1 }
    }

    /// Reports their misses to the readers that have room again.
    package mutating func reportMissed() {
        for index in readers.indices.reversed() where readers[index].missed > 0 {
            _ = admit(index, counting: false)
        }
    }

    /// True when the reader at `index` has been told its misses and can take more.
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

    package mutating func finish() {
        for reader in readers { reader.continuation.finish() }
        readers = []
    }
}

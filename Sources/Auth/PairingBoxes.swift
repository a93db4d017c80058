import ThicketCrypto

/// One message each way between two devices of a user: the new device's public data, and the old device's sealed
/// answer. In memory, for two minutes.
///
/// A box takes one answer, but can be read more than once: a reader has shown only the code, so a read must not
/// remove an answer that the new device has not got yet, for example when the connection lost it. The keys in an
/// answer open only with the new device's one-time key; its head, the user's id and the old device's name, is in
/// clear, and an attacker that has seen the code can read that for the two minutes without being noticed.
///
/// The server cannot open the sealed keys, and cannot replace the new device's key: the box's name is a digest of it,
/// and the user carries the name from screen to screen.
struct PairingBoxes: Sendable {
    /// Lifetime of a box, seconds.
    static let lifetime: Double = 120
    /// Boxes of all users at one time.
    static let boxesMax = 1_024
    /// Longest data of a new device, bytes.
    static let helloBytesMax = 256
    /// Longest answer of an old device, bytes.
    static let answerBytesMax = 2_048

    enum Failure: Error { case full, taken, gone }

    private struct Box {
        let hello: [UInt8]
        var answer: [UInt8]?
        let end: Double
    }

    private var boxes = [String: Box]()

    var isEmpty: Bool { boxes.isEmpty }

    /// - Parameter app: a box exists in one app only.
    mutating func open(_ hello: [UInt8], app: String, now: Double) throws(Failure) {
        clear(now)
        let place = Self.place(PairingCode.text(of: hello), app)
        guard boxes[place] == nil else { throw .taken }
        guard boxes.count < Self.boxesMax else { throw .full }
        boxes[place] = Box(hello: hello, end: now + Self.lifetime)
    }

    /// The contents of a box; they stay in it.
    mutating func look(_ code: String, app: String, now: Double) throws(Failure) -> (hello: [UInt8], answer: [UInt8]?) {
        clear(now)
        let place = Self.place(code, app)
        guard let box = boxes[place] else { throw .gone }
        return (box.hello, box.answer)
    }

    mutating func answer(_ code: String, app: String, _ answer: [UInt8], now: Double) throws(Failure) {
        clear(now)
        let place = Self.place(code, app)
        guard boxes[place] != nil else { throw .gone }
        guard boxes[place]?.answer == nil else { throw .taken }
        boxes[place]?.answer = answer
    }

    private static func place(_ code: String, _ app: String) -> String { "\(app)/\(code)" }

    /// Removes expired boxes. A step back of the clock removes none, and does not keep any box longer than two
    /// minutes.
    mutating func clear(_ now: Double) {
        let latest: Double = now + Self.lifetime
        guard boxes.values.contains(where: { $0.end <= now || $0.end > latest }) else { return }
        boxes = boxes.filter { $0.value.end > now }.mapValues { (box: Box) in
            Box(hello: box.hello, answer: box.answer, end: min(box.end, latest))
        }
    }
}

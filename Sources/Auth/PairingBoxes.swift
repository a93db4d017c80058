import ThicketCrypto

/// Where two devices of a user leave each other one message each: what a new device shows the world, and what an old
/// one has sealed for it. In memory, for two minutes.
///
/// One use is one answer, and not one look: whoever looks has shown nothing but the code, so a look must not take from
/// the new device what it has not got yet, as when the line loses the answer on the way. The keys in an answer open
/// with the new device's one-time key alone; its head, the user's id and the old device's name, is in clear, and
/// whoever has seen the code can read that for the two minutes without being noticed.
///
/// The server can read neither, and cannot put another key in the place of the new device's: the place's name is a
/// digest of it, and the user carries the name from screen to screen.
struct PairingBoxes: Sendable {
    /// Seconds that a box is there.
    static let lifetime: Double = 120
    /// Boxes of all users at one time.
    static let boxesMax = 1_024
    /// Bytes of what a new device shows.
    static let helloBytesMax = 256
    /// Bytes of what an old one answers.
    static let answerBytesMax = 2_048

    enum Failure: Error { case full, taken, gone }

    private struct Box {
        let hello: [UInt8]
        var answer: [UInt8]?
        let end: Double
    }

    private var boxes = [String: Box]()

    var isEmpty: Bool { boxes.isEmpty }

    /// - Parameter app: boxes of one app are nobody's in another.
    mutating func open(_ hello: [UInt8], app: String, now: Double) throws(Failure) {
        clear(now)
        let place = Self.place(PairingCode.text(of: hello), app)
        guard boxes[place] == nil else { throw .taken }
        guard boxes.count < Self.boxesMax else { throw .full }
        boxes[place] = Box(hello: hello, end: now + Self.lifetime)
    }

    /// What is in a box, which stays there.
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

    /// Takes away what is over. A clock that went back takes nothing, and no box is there for longer than two minutes
    /// by it.
    mutating func clear(_ now: Double) {
        let latest: Double = now + Self.lifetime
        guard boxes.values.contains(where: { $0.end <= now || $0.end > latest }) else { return }
        boxes = boxes.filter { $0.value.end > now }.mapValues { (box: Box) in
            Box(hello: box.hello, answer: box.answer, end: min(box.end, latest))
        }
    }
}

/// Decides which message is delivered next, and when: a plain value that receives the folder's content and each result.
///
/// A message leaves the folder only when the mail server has accepted it: a server that does not answer gets it again.
/// So a message may arrive twice, and none is lost. A message that is refused for good, or not accepted for a day, is
/// set aside.
struct MailCourier: Sendable {
    /// Seconds before the next attempt on an unreachable server, doubled each time up to the second number.
    static let serverWaitMin: Double = 5
    static let serverWaitMax: Double = 300
    /// The same for one message that the server rejects for now.
    static let messageWaitMin: Double = 60
    static let messageWaitMax: Double = 1_800
    /// Seconds after which a message that no server has accepted is set aside.
    static let ageMax: Double = 86_400

    /// The result of an attempt.
    enum Result: Sendable, Hashable {
        case taken
        /// The server will never accept this message.
        case refused
        /// The server does not accept this message now.
        case deferred
        /// No message can be delivered now.
        case unreachable
        /// The file does not hold a message of this server.
        case unreadable
    }

    /// What to do with the message after an attempt.
    enum Fate: Sendable, Hashable {
        case remove, setAside
        /// It stays; seconds until the next attempt.
        case keep(wait: Double)
    }

    enum Step: Sendable, Hashable {
        case send(String)
        /// nil: until a new message arrives.
        case wait(until: Double?)
    }

    private struct Delay {
        var tries: Int
        var until: Double
    }

    private var names = [String]()
    private var delays = [String: Delay]()
    private var server = Delay(tries: 0, until: 0)

    /// Number of waiting messages.
    var count: Int { names.count }

    /// Sets the folder's content, in any order. Names begin with the milliseconds since 1970 at which the message was
    /// stored.
    mutating func found(_ names: [String]) {
        self.names = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        let present = Set(names)
        delays = delays.filter { present.contains($0.key) }
    }

    /// - Parameter now: seconds since 1970.
    func next(now: Double) -> Step {
        guard !names.isEmpty else { return .wait(until: nil) }
        // After a clock that went back, no wait exceeds the longest wait.
        if server.until > now, server.until <= now + Self.serverWaitMax { return .wait(until: server.until) }
        var soonest = Double.infinity
        for name in names {
            guard let until: Double = delays[name]?.until, until > now, until <= now + Self.messageWaitMax else {
                return .send(name)
            }
            soonest = min(soonest, until)
        }
        return .wait(until: soonest)
    }

    /// - Parameter now: seconds since 1970.
    mutating func tried(_ name: String, _ result: Result, now: Double) -> Fate {
        if result != .unreachable { server = Delay(tries: 0, until: 0) }
        switch result {
        case .taken, .refused, .unreadable:
            forget(name)
            return result == .taken ? .remove : .setAside
        case .deferred, .unreachable:
            // A message that is a day old is not useful any more.
            if let birth: Double = Self.birth(of: name), now - birth > Self.ageMax {
                forget(name)
                return .setAside
            }
            return .keep(wait: result == .deferred ? delay(name, now) : delayAll(now))
        }
    }

    private mutating func forget(_ name: String) {
        names.removeAll { $0.utf8.elementsEqual(name.utf8) }
        delays[name] = nil
    }

    private mutating func delay(_ name: String, _ now: Double) -> Double {
        let tries = (delays[name]?.tries ?? 0) + 1
        let wait: Double = Self.wait(tries, Self.messageWaitMin, Self.messageWaitMax)
        delays[name] = Delay(tries: tries, until: now + wait)
        return wait
    }

    private mutating func delayAll(_ now: Double) -> Double {
        let wait = Self.wait(server.tries + 1, Self.serverWaitMin, Self.serverWaitMax)
        server = Delay(tries: server.tries + 1, until: now + wait)
        return wait
    }

    private static func wait(_ tries: Int, _ least: Double, _ most: Double) -> Double {
        var seconds = least
        for _ in 1..<max(2, min(64, tries)) where tries > 1 && seconds < most { seconds *= 2 }
        return min(seconds, most)
    }

    /// Seconds since 1970 at which a message was stored; nil when its name does not say.
    static func birth(of name: String) -> Double? {
        Int64(String(decoding: name.utf8.prefix { $0 != UInt8(ascii: "-") }, as: UTF8.self)).map { Double($0) / 1_000 }
    }
}

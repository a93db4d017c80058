/// Decides which message is handed over next, and when: a plain value that is told what is there and what became of
/// each try.
///
/// A message leaves the folder when the mail server has taken it, and not before: a server that says nothing gets it
/// again. So one may come twice and none is lost. One that is refused for good, or that nobody took for a day, is set
/// aside.
struct MailCourier: Sendable {
    /// Seconds before the next try of a server that cannot be reached, doubled each time up to the second number.
    static let serverWaitMin: Double = 5
    static let serverWaitMax: Double = 300
    /// The same for one message that the server does not want now.
    static let messageWaitMin: Double = 60
    static let messageWaitMax: Double = 1_800
    /// Seconds after which a message is set aside that no server has taken.
    static let ageMax: Double = 86_400

    /// What became of a try.
    enum Result: Sendable, Hashable {
        case taken
        /// The server will not take this message, now or later.
        case refused
        /// The server does not want this message now.
        case deferred
        /// No message can be handed over now.
        case unreachable
        /// The file holds no message of ours.
        case unreadable
    }

    /// What is done with the message then.
    enum Fate: Sendable, Hashable {
        case remove, setAside
        /// It stays; seconds until it is tried again.
        case keep(wait: Double)
    }

    enum Step: Sendable, Hashable {
        case send(String)
        /// nil: until there is something new.
        case wait(until: Double?)
    }

    private struct Delay {
        var tries: Int
        var until: Double
    }

    private var names = [String]()
    private var delays = [String: Delay]()
    private var server = Delay(tries: 0, until: 0)

    /// Messages that wait.
    var count: Int { names.count }

    /// What lies in the folder now, in any order. Names begin with the milliseconds since 1970 at which they were put
    /// there.
    mutating func found(_ names: [String]) {
        self.names = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        let present = Set(names)
        delays = delays.filter { present.contains($0.key) }
    }

    /// - Parameter now: seconds since 1970.
    func next(now: Double) -> Step {
        guard !names.isEmpty else { return .wait(until: nil) }
        // A clock that went back makes nobody wait for longer than the longest wait.
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
            // Nobody waits for a message that is a day old.
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

    /// Seconds since 1970 at which a message was put into the folder; nil when its name does not tell.
    static func birth(of name: String) -> Double? {
        Int64(String(decoding: name.utf8.prefix { $0 != UInt8(ascii: "-") }, as: UTF8.self)).map { Double($0) / 1_000 }
    }
}

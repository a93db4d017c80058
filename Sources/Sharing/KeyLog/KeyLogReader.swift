public import ThicketCrypto

/// What one device knows of an app's key log, and what it believes of an answer (spec 4.12).
///
/// Pure: what was received goes in, with the time; a verdict comes out. It keeps the newest head and, of each user it
/// was asked for, the newest entry it has seen (a pin). What the log has committed to under its signature and that
/// breaks the rules is an alarm; what is not shown is refused, and nothing was learned. Once two logs were found,
/// nothing is handed out until that is settled.
public struct KeyLogReader: Sendable, Equatable {
    /// What is kept of one user.
    struct Pin: Sendable, Equatable {
        /// Of the newest entry that was seen.
        var sequence: UInt64
        var hash: Digest256
        var keys: PublicKeys
        /// Those that were handed out before, when the newest ones wait to be confirmed; nil: they do not wait.
        var confirmed: PublicKeys?
        /// Time of the newest head that showed these keys to be the newest; nil: what came last was no good.
        var checked: UInt64?
    }

    /// The app.
    public let app: String
    /// The log's, known from elsewhere.
    public let logKey: Ed25519.VerifyingKey
    /// The newest one that was seen.
    public internal(set) var head: KeyLogHead?
    /// Two heads that do not go together. While it stands, nothing is handed out.
    public internal(set) var fork: KeyLogFork?
    /// When one's own entries were looked at last, by the device's clock.
    public internal(set) var selfChecked: UInt64?
    /// By the user's key in the map.
    var pins = [Digest256: Pin]()

    /// Knows nothing yet.
    /// - Throws: `malformed` for an app that is none.
    public init(app: String, logKey: Ed25519.VerifyingKey) throws(KeyLogError) {
        (self.app, self.logKey) = (try KeyLogFields.app(app), logKey)
    }

    /// Users of whom an entry is kept.
    public var pinCount: Int { pins.count }

    /// What to ask the server for of a user: entries from this number on, and the way from this size.
    public func question(_ user: String) -> (from: UInt64, known: UInt64) {
        (from: pins[KeyLogEntry.mapKey(of: user)]?.sequence ?? 0, known: head?.size ?? 0)
    }

    /// The keys of a user, if they may be used now.
    ///
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - isOnline: whether the server can be asked. Then they must have been looked up within the hour.
    /// - Returns: nil for whoever was not looked up, whose keys wait to be confirmed, whose last answer was an alarm,
    ///   and for everybody while there is a fork.
    public func verifiedKeys(of user: String, now: UInt64, isOnline: Bool) -> PublicKeys? {
        guard fork == nil, let pin = pins[KeyLogEntry.mapKey(of: user)], pin.confirmed == nil,
            let checked = pin.checked, !isOnline || !Self.isStale(checked, now)
        else { return nil }
        return pin.keys
    }

    /// The user of the device has made sure, with the other user, that these keys are right.
    /// - Throws: `notAwaited` when they are not those that wait: there may be newer ones by now.
    public mutating func confirm(_ keys: PublicKeys) throws(KeyLogError) {
        let user = KeyLogEntry.mapKey(of: keys.user)
        guard let pin = pins[user], pin.confirmed != nil, pin.keys == keys else {
            throw KeyLogError(.notAwaited, "these are not the keys that wait to be confirmed: look the user up again")
        }
        pins[user]?.confirmed = nil
    }

    /// Forgets a user: the next keys are taken as the first ones were. For people one has nothing to do with any more,
    /// and for who accepts, after an alarm, what the server shows now.
    public mutating func forget(_ user: String) { pins[KeyLogEntry.mapKey(of: user)] = nil }

    /// The user of the device says that the log was begun anew or went back, as after a restore: its heads are
    /// forgotten. What was pinned stays, and must be in the log that is shown from now on.
    public mutating func beginAnew() { (head, fork) = (nil, nil) }

    /// Whether one's own entries are to be looked at again: a day has passed, or the clock went back. Also to be done
    /// at each start.
    public func isSelfCheckDue(now: UInt64) -> Bool {
        guard let selfChecked else { return true }
        return now < selfChecked || now - selfChecked >= KeyLogLimits.selfCheckMilliseconds
    }

    static func isStale(_ time: UInt64, _ now: UInt64) -> Bool {
        now > time && now - time > KeyLogLimits.headAgeMilliseconds
    }

    static func isFuture(_ time: UInt64, _ now: UInt64) -> Bool {
        time > now && time - now > KeyLogLimits.skewMilliseconds
    }
}

public import ThicketCrypto

/// One device's view of an app's key log, and its verification of answers (spec 4.12).
///
/// Pure: takes the received data and the time, returns a verdict. It stores the newest head and, for each user that was
/// looked up, the newest entry seen (a pin). Content that the log has committed to under its signature and that breaks
/// the rules is an alarm; unproven content is refused and changes nothing. Once two inconsistent heads are found, no
/// keys are returned until that is resolved.
public struct KeyLogReader: Sendable, Equatable {
    /// The stored state of one user.
    struct Pin: Sendable, Equatable {
        /// Sequence of the newest entry seen.
        var sequence: UInt64
        var hash: Digest256
        var keys: PublicKeys
        /// The keys that were in use before, while newer ones wait for confirmation; nil: no confirmation is pending.
        var confirmed: PublicKeys?
        /// Time of the newest head that proved these keys to be the newest; nil: the latest answer was an alarm.
        var checked: UInt64?
    }

    /// The app.
    public let app: String
    /// The log's key, which the app knows from another source.
    public let logKey: Ed25519.VerifyingKey
    /// The newest head seen.
    public internal(set) var head: KeyLogHead?
    /// Two inconsistent heads. While it is set, no keys are returned.
    public internal(set) var fork: KeyLogFork?
    /// Time of the latest check of own entries, device clock, milliseconds since 1970.
    public internal(set) var selfChecked: UInt64?
    /// By the user's key in the map.
    var pins = [Digest256: Pin]()

    /// Creates an empty state.
    /// - Throws: `malformed` for an invalid app name.
    public init(app: String, logKey: Ed25519.VerifyingKey) throws(KeyLogError) {
        (self.app, self.logKey) = (try KeyLogFields.app(app), logKey)
    }

    /// Number of pinned users.
    public var pinCount: Int { pins.count }

    /// The parameters of a look-up of a user: first entry to return, and log size for the consistency proof.
    public func question(_ user: String) -> (from: UInt64, known: UInt64) {
        (from: pins[KeyLogEntry.mapKey(of: user)]?.sequence ?? 0, known: head?.size ?? 0)
    }

    /// The keys of a user, if they may be used now.
    ///
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - isOnline: whether the server is reachable. If so, the keys must have been looked up within the last hour.
    /// - Returns: nil for a user that was not looked up, whose keys wait for confirmation, or whose latest answer was
    ///   an alarm; nil for every user while a fork exists.
    public func verifiedKeys(of user: String, now: UInt64, isOnline: Bool) -> PublicKeys? {
        guard fork == nil, let pin = pins[KeyLogEntry.mapKey(of: user)], pin.confirmed == nil,
            let checked = pin.checked, !isOnline || !Self.isStale(checked, now)
        else { return nil }
        return pin.keys
    }

    /// Records that the user of this device has verified these keys with the other user.
    /// - Throws: `notAwaited` when these are not the keys that wait for confirmation; newer ones may have arrived.
    public mutating func confirm(_ keys: PublicKeys) throws(KeyLogError) {
        let user = KeyLogEntry.mapKey(of: keys.user)
        guard let pin = pins[user], pin.confirmed != nil, pin.keys == keys else {
            throw KeyLogError(.notAwaited, "these are not the keys that wait to be confirmed: look the user up again")
        }
        pins[user]?.confirmed = nil
    }

    /// Removes a user's pin: the next keys are accepted like first ones. For contacts that are no longer needed, and
    /// for a user that accepts the server's current keys after an alarm.
    public mutating func forget(_ user: String) { pins[KeyLogEntry.mapKey(of: user)] = nil }

    /// Removes the known heads, when the user of this device declares that the log was restarted or restored from a
    /// backup. Pins are kept, and must be contained in the log that is shown from now on.
    public mutating func reset() { (head, fork) = (nil, nil) }

    /// Whether the own entries must be checked again: a day has passed, or the clock went back.
    public func isSelfCheckDue(now: UInt64) -> Bool {
        guard let selfChecked else { return true }
        return now < selfChecked || now - selfChecked >= KeyLogLimits.selfCheckMilliseconds
    }

    /// Whether a session that starts checks the own entries: not when this device has checked them within the last
    /// hour, which is how long heads count, so that many short sessions do not ask each time.
    public func isStartCheckDue(now: UInt64) -> Bool {
        guard let selfChecked else { return true }
        return now < selfChecked || Self.isStale(selfChecked, now)
    }

    static func isStale(_ time: UInt64, _ now: UInt64) -> Bool {
        now > time && now - time > KeyLogLimits.headAgeMilliseconds
    }

    static func isFuture(_ time: UInt64, _ now: UInt64) -> Bool {
        time > now && time - now > KeyLogLimits.skewMilliseconds
    }
}

/// What a device knows of one user.
extension KeyLogReader {
    /// The newest keys seen of a user, whether or not they may be used now; nil for a user that was not looked up.
    public func pinnedKeys(of user: String) -> PublicKeys? { pins[KeyLogEntry.mapKey(of: user)]?.keys }

    /// Whether these are the keys that wait for the user's confirmation.
    public func isAwaited(_ keys: PublicKeys) -> Bool {
        guard let pin = pins[KeyLogEntry.mapKey(of: keys.user)] else { return false }
        return pin.confirmed != nil && pin.keys == keys
    }

    /// Whether a user's newest keys wait for the confirmation by the user of this device.
    public func isAwaiting(_ user: String) -> Bool { pins[KeyLogEntry.mapKey(of: user)]?.confirmed != nil }
}

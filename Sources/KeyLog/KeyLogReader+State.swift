import ThicketCrypto

/// The state of the key log that a device stores.
///
/// Bytes: `thicket/key-reader/1` ‖ 0x00 ‖ app ‖ the log's key (32) ‖ newest head (144, or none) ‖ fork (or none) ‖ time
/// of the latest check of own entries (8, or none), each with 16 bits of length; number of users (8), and for each,
/// ascending by its key in the map: user ‖ number of the entry (8) ‖ its hash (32) ‖ identity key (32) ‖ encryption key
/// (32) ‖ the previously confirmed keys while a confirmation is pending (64, or none) ‖ time of the last valid look-up
/// (8, or none). The encoding of a state is unique. The device does not sign it, so it must be stored where no other
/// program can write.
extension KeyLogReader {
    private static let label: StaticString = "thicket/key-reader/1"

    /// The encoding for storage.
    public var bytes: [UInt8] {
        var bytes = LabelledBytes(Self.label)
        bytes.put(app.utf8)
        bytes.put(logKey.octets)
        bytes.put(head?.bytes ?? [])
        bytes.put(fork?.bytes ?? [])
        bytes.put(selfChecked?.octets ?? [])
        bytes.add(bare: UInt64(pins.count))
        for (_, pin) in pins.sorted(by: { Self.rises($0.key, $1.key) }) {
            bytes.put(pin.keys.user.utf8)
            bytes.add(bare: pin.sequence)
            bytes.put(pin.hash.bytes)
            bytes.put(pin.keys.identity.octets)
            bytes.put(pin.keys.encryption.octets)
            bytes.put(pin.confirmed.map { $0.identity.octets + $0.encryption.octets } ?? [])
            bytes.put(pin.checked?.octets ?? [])
        }
        return bytes.octets
    }

    /// Parses the result of `bytes`.
    /// - Throws: `malformed`, `tooMany`; `notSigned` when a stored head is not signed with the stored key.
    public init(_ bytes: [UInt8]) throws(KeyLogError) {
        var fields = try KeyLogFields(
            bytes, label: Self.label, max: KeyLogLimits.stateBytesMax, what: "a device's state")
        let app = try fields.app()
        guard let key: Ed25519.VerifyingKey = try? .init(try fields.field(Ed25519.octetsCount)) else {
            throw .malformed("the log's key is invalid")
        }
        try self.init(app: app, logKey: key)
        let head = try fields.field(KeyLogHead.bytesCount, orNone: true)
        if !head.isEmpty {
            self.head = try KeyLogHead(head)
            try self.head?.check(key)
        }
        let fork = try fields.field()
        if !fork.isEmpty {
            self.fork = try KeyLogFork(Array(fork))
            _ = try self.fork?.check(key)
        }
        selfChecked = try fields.numberOrNone()
        try readPins(&fields)
        try fields.end()
    }

    private mutating func readPins(_ fields: inout KeyLogFields) throws(KeyLogError) {
        let count = try fields.number()
        guard count <= UInt64(KeyLogLimits.pinsMax) else {
            throw KeyLogError(.tooMany, "key log: \(count) users are kept; the maximum is \(KeyLogLimits.pinsMax)")
        }
        var last: Digest256?
        for _ in 0..<count {
            let user = try fields.user()
            let key = KeyLogEntry.mapKey(of: user)
            guard last.map({ Self.rises($0, key) }) ?? true else {
                throw .malformed("the users of a device's state are not in their order")
            }
            last = key
            pins[key] = try Self.readPin(user, &fields)
        }
    }

    private static func readPin(_ user: String, _ fields: inout KeyLogFields) throws(KeyLogError) -> Pin {
        let sequence = try fields.number()
        guard let hash = Digest256(try fields.field(Digest256.byteCount)) else {
            throw .malformed("a hash in a device's state is invalid")
        }
        let keys = try fields.keys(of: user)
        let confirmed = try fields.field(2 * Ed25519.octetsCount, orNone: true)
        return Pin(
            sequence: sequence, hash: hash, keys: keys,
            confirmed: confirmed.isEmpty ? nil : try KeyLogFields.keys(of: user, confirmed[..<32], confirmed[32...]),
            checked: try fields.numberOrNone())
    }

    private static func rises(_ left: Digest256, _ right: Digest256) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }
}

public import ThicketCrypto
import ThicketProtocol

/// A new device gets an account's keys from a device that has them (spec 4.11). The new device shows a one-time key as
/// a code of 26 letters, the user types the code on the old device, and the old device seals the access key to that
/// key. Both then show four words, which are equal only if they have talked to each other.
///
/// The server carries one message in each direction, for two minutes, and can read neither.
public struct Pairing: Sendable {
    /// Longest device name in bytes.
    static let deviceBytesMax = 128
    /// Number of words that both screens show.
    static let wordCount = 4

    /// What the new device publishes: its one-time key and its name.
    let hello: [UInt8]

    /// The 26 letters as shown, in groups of up to four separated by dashes.
    public var code: String {
        let letters: [Character] = Array(PairingCode.text(of: hello))
        return stride(from: 0, to: letters.count, by: 4).map { start in
            String(letters[start..<min(start + 4, letters.count)])
        }.joined(separator: "-")
    }

    var name: String { PairingCode.text(of: hello) }

    /// The name of the new device.
    var device: String { String(decoding: hello.dropFirst(X25519.octetsCount), as: UTF8.self) }

    package init(hello: [UInt8]) throws(AccountError) {
        guard (X25519.octetsCount...X25519.octetsCount + Self.deviceBytesMax).contains(hello.count) else {
            throw .pairingForged
        }
        self.hello = hello
    }

    // MARK: - The new device

    /// A pairing that this device has begun, with its private key.
    public struct Begun: Sendable {
        /// The pairing whose code the user types on the other device.
        public let pairing: Pairing
        let key: X25519.PrivateKey
        let app: String
    }

    package static func begin(app: String, device: String, random: AccountRandom) throws(AccountError) -> Begun {
        guard device.utf8.count <= deviceBytesMax, let key: X25519.PrivateKey = try? .init(random.secret(32)) else {
            throw .unusable("the device's name is too long")
        }
        return Begun(pairing: try Pairing(hello: key.publicKey.octets + device.utf8), key: key, app: app)
    }

    /// What an old device has sent.
    public struct Received: Sendable {
        /// Four words that the user must compare with those on the other screen, before anything is stored.
        public let words: String
        /// The account's access key.
        public let accessKey: AccessKey
        /// The account's id.
        public let user: String
        /// The account's login name; empty for a partner's user.
        public let name: String
        /// A login for this device; empty for a partner's user.
        public let accessToken: String
        /// The parameters of the key derivation, as the old device remembers them; nil when it has none or does not
        /// send them.
        public let pin: PasswordPin?
        /// The newest version of the bundle that the old device has seen; nil when it does not send it.
        public let version: UInt64?
    }

    // MARK: - The old device

    /// What an old device hands over.
    struct Payload {
        let accessKey: AccessKey
        let user: String
        let name: String
        let accessToken: String
        /// The old device's name.
        let device: String
        /// The parameters that the old device would accept from the server when it asks for the password.
        let pin: PasswordPin?
        /// The newest version of the bundle that the old device has seen.
        let version: UInt64
    }

    /// Bytes: lp(user) ‖ lp(old device) ‖ HPKE base mode, suite 1, of a JSON object; its info binds app, user and both
    /// devices.
    func seal(_ payload: Payload, app: String) throws(AccountError) -> [UInt8] {
        var writer = SecretWriter()
        writer.add("access_key", bytes: payload.accessKey.secret)
        writer.add("name", .string(payload.name))
        writer.add("token", .string(payload.accessToken))
        if let pin = payload.pin { writer.add("pin", pin.json) }
        writer.add("version", BundleVersion.json(payload.version))
        return try seal(text: writer.text, user: payload.user, from: payload.device, app: app)
    }

    /// As above, for any text: any party that has seen the code can send one.
    package func seal(
        text: SecureBytes, user: String, from device: String, app: String
    ) throws(AccountError) -> [UInt8] {
        do throws(CryptoError) {
            let head = Head(user: user, device: device)
            let key = try X25519.PublicKey(Array(hello.prefix(X25519.octetsCount)))
            return try head.octets
                + HPKE.seal(text, .aes256GCM, to: key, info: try info(app, head))
        } catch { throw .pairingForged }
    }

    /// The four words of this exchange.
    package func words(_ answer: [UInt8]) throws(AccountError) -> String {
        var bytes = LabelledBytes("thicket/pair-words/1")
        do throws(CryptoError) {
            try bytes.add(hello)
            try bytes.add(answer)
        } catch { throw .pairingForged }
        // 44 bits, as the first four words of a phrase.
        guard let phrase = try? RecoveryWords.words(SecureBytes(copying: Hash.sha256(bytes.octets))) else {
            throw .pairingForged
        }
        let all = phrase.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        return all.split(separator: " ").prefix(Self.wordCount).joined(separator: " ")
    }

    fileprivate struct Head {
        let user: String
        let device: String

        init(user: String, device: String) { (self.user, self.device) = (user, device) }

        var octets: [UInt8] {
            get throws(CryptoError) {
                var bytes = [UInt8]()
                for field in [user, device] {
                    guard field.utf8.count <= 512 else { throw .outOfBounds(.info) }
                    bytes += [UInt8(field.utf8.count >> 8), UInt8(field.utf8.count & 0xFF)] + field.utf8
                }
                return bytes
            }
        }

        /// - Returns: nil for invalid bytes; otherwise the head and the bytes after it.
        static func read(_ bytes: [UInt8]) -> (Head, rest: [UInt8])? {
            var (place, fields): (Int, [String]) = (0, [])
            for _ in 0..<2 {
                guard bytes.count >= place + 2 else { return nil }
                let end = place + 2 + Int(bytes[place]) << 8 + Int(bytes[place + 1])
                guard bytes.count >= end, let field = String(validating: bytes[(place + 2)..<end], as: UTF8.self)
                else { return nil }
                fields.append(field)
                place = end
            }
            return (Head(user: fields[0], device: fields[1]), Array(bytes[place...]))
        }
    }

    fileprivate func info(_ app: String, _ head: Head) throws(CryptoError) -> [UInt8] {
        var bytes = LabelledBytes("thicket/pair/1")
        for field in [app, head.user, device, head.device] { try bytes.add(field.utf8) }
        return bytes.octets
    }
}

extension Pairing.Received: CustomStringConvertible, CustomReflectable {
    /// A fixed text: keys and token never reach a log.
    public var description: String { "(keys from another device)" }
    /// Empty, for the same reason.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

extension Pairing.Begun {
    /// Opens the answer.
    ///
    /// - Throws: `pairingForged` for any invalid answer.
    package func open(_ answer: [UInt8]) throws(AccountError) -> Pairing.Received {
        guard let (head, sealed) = Pairing.Head.read(answer),
            let info = try? pairing.info(app, head),
            let text = try? HPKE.open(sealed, .aes256GCM, with: key, info: info),
            let object = SecretObject(text),
            let secret = object.bytes("access_key", count: AccessKey.bytesCount),
            let key = try? AccessKey(secret), let name = object.value("name")?.stringValue,
            let token = object.value("token")?.stringValue
        else { throw .pairingForged }
        let (pin, version): (PasswordPin?, UInt64?)
        do throws(AccountError) {
            (pin, version) = (try PasswordPin.read(object), try BundleVersion.read(object))
        } catch { throw .pairingForged }
        return Pairing.Received(
            words: try pairing.words(answer), accessKey: key, user: head.user, name: name, accessToken: token, pin: pin,
            version: version)
    }
}

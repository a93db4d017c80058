import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// Messages of one HPKE exchange (RFC 9180).
extension CryptoLines {
    /// The names of the modes (RFC 9180, 5, table 1), in the order of their numbers.
    private static let modes = ["base", "psk", "auth", "auth_psk"]

    /// Modes by number or name: 0 (base) and 2 (auth); 1 and 3 with `psk` and `psk_id`, as in published vectors. A
    /// message may give its number in `seq`; otherwise it follows the previous message.
    static func hpkeOpen(_ request: Request) throws -> JSONObject {
        let given = try request.value("mode")
        let named: Int? = given.stringValue.flatMap { name in modes.firstIndex { $0.utf8.elementsEqual(name.utf8) } }
        guard given.stringValue != nil || given.numberValue != nil else {
            throw RequestError("'mode' is neither a number nor a name")
        }
        guard let mode = named ?? given.intValue.flatMap({ Int(exactly: $0) }), modes.indices.contains(mode) else {
            throw CryptoError.openingFailed
        }
        let number = try request.number("aead_id", UInt16.self)
        guard let cipher = HPKE.Cipher(rawValue: number) else { throw CryptoError.openingFailed }
        let (isAuthenticated, hasSecret) = (mode & 2 != 0, mode & 1 != 0)
        var context = try HPKE.Receiver(
            cipher, encapsulated: request.bytes("enc"),
            with: X25519.PrivateKey(SecureBytes(copying: request.bytes("skRm"))), info: request.bytes("info"),
            sender: isAuthenticated ? X25519.PublicKey(request.bytes("pkSm")) : nil,
            psk: hasSecret
                ? HPKE.PresharedSecret(SecureBytes(copying: request.bytes("psk")), id: request.bytes("psk_id")) : nil)
        var plaintexts = [JSONValue]()
        for value in try request.list("messages") {
            guard value.objectValue != nil else { throw RequestError("a message is one JSON object") }
            let message = Request(value)
            if message.has("seq") {
                context.skip(to: try message.number("seq", UInt64.self))
            }
            let clear = try context.open(message.bytes("ct"), data: message.bytes("aad"))
            plaintexts.append(.string(Hex.encode(clear)))
        }
        return ["plaintexts": .array(plaintexts)]
    }
}

internal import ThicketCrypto
internal import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol

/// The stored form: JSON with the members `format` (1), `app`, `reader` (`KeyLogReader.bytes`), `contacts`, `alarms`,
/// `heads`, `answers`, `witnesses` and `witnessed`; bytes are base64url.
extension PeopleState {
    private static let format: Int64 = 1

    var bytes: [UInt8] {
        var object: JSONObject = ["format": .number(JSONNumber(Self.format)), "app": .string(app)]
        if let reader { object["reader"] = Self.text(reader.bytes) }
        object["contacts"] = .array(contacts.values.sorted { $0.user < $1.user }.map(Self.value))
        object["alarms"] = .array(
            alarms.map { .object(["open": .bool($0.isOpen), "evidence": .object($0.evidence.json)]) })
        object["heads"] = .array(heads.map { Self.text($0.bytes) })
        object["answers"] = .object(
            JSONObject(answers.sorted { $0.key < $1.key }.map { ($0.key, Self.text($0.value)) }))
        object["witnesses"] = .array(witnesses.map { Self.text($0.octets) })
        if let witnessed { object["witnessed"] = .number(JSONNumber(Int64(clamping: witnessed))) }
        return JSONValue.object(object).serialized()
    }

    /// Reads the result of `bytes`.
    /// - Throws: `store` for a damaged state, or one of a newer version.
    init(_ bytes: [UInt8]) throws(ClientError) {
        guard let object = (try? JSONValue(parsing: bytes))?.objectValue, let app = object["app"]?.stringValue else {
            throw Self.damaged
        }
        guard object["format"]?.intValue == Self.format else {
            throw ClientError(.store, "what is known of other people's keys was written by a newer version")
        }
        self.init(app: app)
        do throws(KeyLogError) { try read(object) } catch { throw Self.damaged }
    }

    private static let damaged = ClientError(.store, "what is known of other people's keys is damaged on this device")

    private mutating func read(_ object: JSONObject) throws(KeyLogError) {
        if let bytes = Self.octets(object["reader"]) { reader = try KeyLogReader(bytes) }
        for value in object["contacts"]?.arrayValue ?? [] {
            guard let contact = Self.contact(value) else { throw Self.malformed }
            contacts[contact.user] = contact
        }
        for value in object["alarms"]?.arrayValue ?? [] {
            guard let evidence = value["evidence"]?.objectValue else { throw Self.malformed }
            alarms.append(
                PeopleAlarm(evidence: try KeyLogEvidence(evidence), isOpen: value["open"]?.boolValue ?? true))
        }
        for value in object["heads"]?.arrayValue ?? [] { heads.append(try KeyLogHead(try Self.needed(value))) }
        for (user, value) in object["answers"]?.objectValue?.pairs ?? [] { answers[user] = try Self.needed(value) }
        for value in object["witnesses"]?.arrayValue ?? [] {
            guard let key: Ed25519.VerifyingKey = try? .init(try Self.needed(value)) else { throw Self.malformed }
            witnesses.append(key)
        }
        witnessed = object["witnessed"]?.intValue.flatMap(UInt64.init(exactly:))
    }

    private static let malformed = KeyLogError(.malformed, "a member of the state is missing")

    private static func value(_ contact: Contact) -> JSONValue {
        var object: JSONObject = [
            "user": .string(contact.user), "added": .number(JSONNumber(Int64(clamping: contact.added))),
        ]
        if let name = contact.name { object["name"] = .string(name) }
        if let compared = contact.compared { object["compared"] = text(compared.octets) }
        return .object(object)
    }

    private static func contact(_ value: JSONValue) -> Contact? {
        guard let user = value["user"]?.stringValue,
            let added = value["added"]?.intValue.flatMap(UInt64.init(exactly:))
        else { return nil }
        var contact = Contact(user: user, name: value["name"]?.stringValue, added: added)
        if let compared = value["compared"] {
            guard let bytes = octets(compared), let key: Ed25519.VerifyingKey = try? .init(bytes) else { return nil }
            contact.compared = key
        }
        return contact
    }

    private static func text(_ bytes: [UInt8]) -> JSONValue { .string(Base64.encodeURL(bytes)) }

    private static func octets(_ value: JSONValue?) -> [UInt8]? {
        value?.stringValue.flatMap { Base64.decodeURL(Array($0.utf8)[...]) }
    }

    private static func needed(_ value: JSONValue) throws(KeyLogError) -> [UInt8] {
        guard let bytes = octets(value) else { throw malformed }
        return bytes
    }
}

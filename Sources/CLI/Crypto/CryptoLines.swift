import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The operations of `thicket crypto`, on one line each, so that implementations on other platforms can be compared
/// with this one.
///
/// Bytes are hex. A sealed value that does not open returns one and the same `{"error"}` for every reason; a line that
/// lacks a member, or has no bytes where bytes are required, returns another error, which names the fault. Lines are
/// test data: their content stays in memory that is not wiped.
enum CryptoLines {
    enum Operation: String, Sendable, CaseIterable {
        case stretch
        case rncryptorOpen = "rncryptor-open"
        case hpkeOpen = "hpke-open"
        case contentSeal = "content-seal"
        case contentOpen = "content-open"
        case nameTag = "name-tag"
        case words
        case merkle

        /// Whether the operation opens a value that another party sealed: then the reason of a failure is not returned.
        var opens: Bool {
            switch self {
            case .rncryptorOpen, .hpkeOpen, .contentOpen, .words: true
            case .stretch, .contentSeal, .nameTag, .merkle: false
            }
        }
    }

    /// The answer to one line, without a line feed.
    static func answer(line: [UInt8], _ operation: Operation) -> [UInt8] {
        let answer: JSONObject
        do {
            answer = try Self.answer(to: Request(line), operation)
        } catch let error as RequestError {
            answer = ["error": .string(error.description)]
        } catch let error as JSONError {
            answer = ["error": .string(error.description)]
        } catch let error as CryptoError where !operation.opens {
            answer = ["error": .string(error.description)]
        } catch {
            answer = ["error": .string(CryptoError.openingFailed.description)]
        }
        return JSONValue.object(answer).serialized()
    }

    private static func answer(to request: Request, _ operation: Operation) throws -> JSONObject {
        switch operation {
        case .stretch: try stretch(request)
        case .rncryptorOpen: try rncryptorOpen(request)
        case .hpkeOpen: try hpkeOpen(request)
        case .contentSeal: try contentSeal(request)
        case .contentOpen: try contentOpen(request)
        case .nameTag: try nameTag(request)
        case .words: try words(request)
        case .merkle: try merkle(request)
        }
    }

    private static func stretch(_ request: Request) throws -> JSONObject {
        let credentials = try StretchedCredentials(
            username: request.secretText("username"), password: request.secretText("password"))
        return [
            "stretched_username": .string(text(credentials.username)),
            "stretched_password": .string(text(credentials.password)),
        ]
    }

    private static func rncryptorOpen(_ request: Request) throws -> JSONObject {
        let (password, message) = (
            try request.secretText("password"), try request.bytes("message_hex")
        )
        let rounds = try request.number("iterations", Int.self)
        guard let function = HashFunction(rawValue: try request.text("prf")) else {
            throw CryptoError.openingFailed
        }
        let clear = try RNCryptor.open(
            message, password: password, RNCryptor.Stretching(function, rounds: rounds))
        let bytes: [UInt8] = clear.withUnsafeBytes { Array($0) }
        // Notes hold text. Content that is not valid UTF-8 is returned as bytes instead of being changed.
        guard let plaintext = String(validating: bytes, as: UTF8.self) else {
            return ["plaintext_hex": .string(Hex.encode(bytes))]
        }
        return ["plaintext": .string(plaintext)]
    }

    private static func contentKey(_ request: Request) throws -> ContentKey {
        let number = try request.number("suite", UInt8.self)
        return try ContentKey(
            AEADSuite(number: number), key: SecureBytes(copying: request.bytes("content_key")),
            dataID: request.bytes("data_id"))
    }

    private static func contentSeal(_ request: Request) throws -> JSONObject {
        let key = try contentKey(request)
        return ["sealed_hex": .string(Hex.encode(try ContentSealer.seal(request.bytes("plaintext_hex"), key)))]
    }

    private static func contentOpen(_ request: Request) throws -> JSONObject {
        let (key, sealed) = (try contentKey(request), try request.bytes("sealed_hex"))
        let length = try request.number("length", UInt64.self)
        return ["plaintext_hex": .string(Hex.encode(try ContentOpener.open(sealed, key, length: length)))]
    }

    private static func nameTag(_ request: Request) throws -> JSONObject {
        let (name, salt): ([UInt8], [UInt8]) = (Array(try request.text("name").utf8), try request.bytes("salt"))
        do {
            return ["tag": .string(try NameTag.text(of: name, salt: salt))]
        } catch {
            throw RequestError("'name' is longer than \(UnicodeText.bytesMax) bytes")
        }
    }

    private static func words(_ request: Request) throws -> JSONObject {
        let entropy = try RecoveryWords.entropy(request.secretText("words"))
        return ["entropy": .string(Hex.encode(entropy.withUnsafeBytes { Array($0) }))]
    }

    private static func text(_ secret: SecureBytes) -> String {
        secret.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }
}

/// One parsed line.
struct Request {
    /// Deepest JSON nesting of a line.
    private static let depthMax = 8
    private let line: JSONValue

    init(_ line: [UInt8]) throws {
        let value = try JSONValue(parsing: line, maxDepth: Self.depthMax)
        guard value.objectValue != nil else { throw RequestError("a line is one JSON object") }
        self.line = value
    }

    init(_ value: JSONValue) { line = value }

    func has(_ name: String) -> Bool { line[name] != nil }

    func value(_ name: String) throws -> JSONValue {
        guard let value = line[name] else { throw RequestError("no member '\(name)'") }
        return value
    }

    func text(_ name: String) throws -> String {
        guard let text = try value(name).stringValue else { throw RequestError("'\(name)' is not a text") }
        return text
    }

    /// - Throws: `RequestError` for a value that is not a number; `outOfBounds`, reported like a value that does not
    ///   open, for a number that does not fit.
    func number<Number: FixedWidthInteger>(_ name: String, _: Number.Type) throws -> Number {
        guard case .number(let found) = try value(name) else { throw RequestError("'\(name)' is not a number") }
        guard let number = JSONValue.number(found).intValue.flatMap({ Number(exactly: $0) }) else {
            throw CryptoError.outOfBounds(.suite)
        }
        return number
    }

    func secretText(_ name: String) throws -> SecureBytes {
        var bytes: [UInt8] = Array(try text(name).utf8)
        return SecureBytes(taking: &bytes)
    }

    func bytes(_ name: String) throws -> [UInt8] {
        guard let bytes = Hex.decode(try text(name)) else { throw RequestError("'\(name)' is not hex") }
        return bytes
    }

    func list(_ name: String) throws -> [JSONValue] {
        guard let list = try value(name).arrayValue else { throw RequestError("'\(name)' is not a list") }
        return list
    }
}

/// The fault of a line, found before anything was opened.
struct RequestError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

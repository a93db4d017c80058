import Testing
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketTree
@testable import ThicketTreeShape

/// A record as a device sends it, as JSON.
private func sample(seed: UInt64 = 11) throws -> JSONObject {
    let trees = try TreeCase(seed: seed)
    let draft = NodeDraft(
        try NodeName("foo"), content: .inline(NodeContent(data: [1, 2, 3])), burnTime: 1_800_000_000_000)
    return try trees.sealer.create(draft, trees.newID(), below: trees.home).object
}

@Suite("Records as JSON", .noncesGiven)
struct RecordTests {
    private static let id = "aaaqeayeaudaocajbifqydiob4"
    private static let user = JSONValue.string("bob")
    private static let seal64 = JSONValue.string(Base64.encodeURL([UInt8](repeating: 1, count: 64)))

    private static func sealed(_ count: Int, suite: UInt8 = 1) -> JSONValue {
        .string(Base64.encodeURL([suite] + [UInt8](repeating: 0, count: count - 1)))
    }

    private static func fault(_ object: JSONObject, from origin: NodeRecord.Origin = .device) -> RecordFault? {
        do throws(RecordFault) {
            _ = try NodeRecord(object, from: origin)
            return nil
        } catch { return error }
    }

    @Test("a record is written as it was read, byte for byte, in the order of its members")
    func roundTrip() throws {
        for seed: UInt64 in 1...50 {
            var object = try sample(seed: seed)
            object["by"] = Self.user
            object["k"] = "key-1"
            object["sig"] = Self.seal64
            object["_t"] = 1_700_000_000_000
            object["_c"] = 0
            object["_from"] = "carol"
            let text = object.serialized()
            let record = try NodeRecord(parsing: text, from: .server)
            #expect(record.object.serialized() == text)
            #expect(
                record.object.keys == [
                    "v", "p", "n", "e", "w", "q", "m", "d", "x", "s", "by", "k", "sig", "_t", "_c", "_from",
                ])
            let shuffled = JSONObject(object.pairs.sorted { $0.key < $1.key })
            #expect(try NodeRecord(shuffled, from: .server).object.serialized() == text)
        }
    }

    @Test("stamps are the server's: a record of a device must not have them, and they are not authenticated")
    func stamps() throws {
        for key in ["_t", "_c", "_from"] {
            var object = try sample()
            object[key] = key == "_from" ? "bob" : 5
            #expect(Self.fault(object) == .stamped && Self.fault(object, from: .server) == nil)
            for wrong: JSONValue in [nil, [], -1, 1.5, true, .string("\u{1}")] {
                object[key] = .some(wrong)
                #expect(Self.fault(object, from: .server) != nil, "\(key) \(wrong)")
            }
        }
    }

    @Test("each member that is missing, of another type, or unknown is named")
    func members() throws {
        let object = try sample()
        for key: RecordKey in [.format, .parent, .tag, .epoch, .wraps, .commitment, .metadata, .base] {
            var without = object
            without.remove(key.rawValue)
            #expect(Self.fault(without) == .missing(key))
        }
        for key in RecordKey.allCases where key != .shareList && !RecordKey.stamps.contains(key) {
            for wrong: JSONValue in [nil, true, [:], ["a": 1]] {
                var changed = object
                if [.author, .signingKey, .signature].contains(key) {
                    (changed["by"], changed["k"], changed["sig"]) = (Self.user, "k", Self.seal64)
                }
                changed[key.rawValue] = .some(wrong)
                let fault = Self.fault(changed)
                #expect(
                    fault == .wrongType(key) || key == .data && fault == .badData,
                    "\(key) \(wrong) \(String(describing: fault))")
            }
        }
        for key in ["", "z", "V", "vv", "_x", "p ", "é"] {
            var changed = object
            changed[key] = 1
            #expect(Self.fault(changed) == .unknownMember, "\(key)")
        }
        var shared = object
        shared["l"] = ["a": ["bob": "rw"]]
        #expect(Self.fault(shared) == .shareList(.malformed))
    }

    @Test(
        "numbers are whole, within their bounds, and in plain digits",
        arguments: ["1.0", "1e0", "-0", "0.5", "-1", "1e400", "99999999999999999999", "10E0"])
    func numbers(text: String) throws {
        for key: RecordKey in [.format, .epoch, .burnTime, .base] {
            var object = try sample()
            object[key.rawValue] = .number(try #require(JSONNumber(lexeme: text)))
            #expect(Self.fault(object) == .badNumber(key))
        }
    }

    @Test("the bounds of each number are the last that is accepted")
    func numberBounds() throws {
        let bounds: [(RecordKey, Int64, Int64)] = [
            (.epoch, 0, 0xFFFF_FFFF), (.burnTime, 1, 253_402_300_799_999), (.base, 0, 9_007_199_254_740_991),
        ]
        for (key, low, high) in bounds {
            for (number, isRight) in [(low, true), (high, true), (low - 1, false), (high + 1, false)] {
                var object = try sample()
                object[key.rawValue] = .number(JSONNumber(number))
                #expect((Self.fault(object) == nil) == isRight, "\(key) \(number)")
            }
        }
        for (format, fault): (Int64, RecordFault?) in [(1, nil), (0, .otherFormat), (2, .otherFormat)] {
            var object = try sample()
            object["v"] = .number(JSONNumber(format))
            #expect(Self.fault(object) == fault)
        }
    }

    @Test("a parent, a tag, a commitment or metadata of another form is refused, each with its own fault")
    func forms() throws {
        let cases: [(String, JSONValue, RecordFault)] = [
            ("p", "Home", .badParent), ("p", "", .badParent), ("p", "aaaqeayeaudaocajbifqydiob5", .badParent),
            ("n", "foo", .badTag), ("n", "BEEQSCIJBEEQSCIJBEEQSCIJBEEQSCIJ", .badTag),
            ("q", Self.sealed(31), .badBytes(.commitment)), ("q", Self.sealed(33), .badBytes(.commitment)),
            ("q", "AAA=", .badBytes(.commitment)), ("m", "AB CD", .badBytes(.metadata)),
            ("m", "AB", .badBytes(.metadata)),
            ("m", "", .unknownSuite), ("m", Self.sealed(29 + 64, suite: 3), .unknownSuite),
            ("m", Self.sealed(29), .badMetadata), ("m", Self.sealed(29 + 63), .badMetadata),
            ("m", Self.sealed(29 + 16_448), .badMetadata), ("m", Self.sealed(1), .badMetadata),
        ]
        for (key, value, fault) in cases {
            var object = try sample()
            object[key] = value
            #expect(Self.fault(object) == fault, "\(key)")
        }
        for count in [64, 16_384] {
            var object = try sample()
            object["m"] = Self.sealed(29 + count)
            #expect(Self.fault(object) == nil)
        }
    }

    @Test("wrapped keys have the members and the length of their kind, one for each reader")
    func wraps() throws {
        func wrap(_ kind: JSONValue, _ count: Int, key: JSONValue? = nil, suite: UInt8 = 1) -> JSONValue {
            var object: JSONObject = ["t": kind, "c": Self.sealed(count, suite: suite)]
            if let key { object["k"] = key }
            return .object(object)
        }
        let right: [[JSONValue]] = [
            [wrap("p", 61)], [wrap("u:bob", 81, key: "k1")], [wrap("srv:mail", 81, key: "k.1_-")], [wrap("pw", 61)],
            [wrap("pw", 256), wrap("p", 61, suite: 2), wrap("u:b", 81, key: "k"), wrap("u:a", 81, key: "k")],
            [wrap("u:\u{301}x", 81, key: "k")],
            (0..<256).map { wrap(.string("u:\($0)"), 81, key: "k") },
        ]
        for wraps in right {
            var object = try sample()
            object.remove("d")
            object["w"] = .array(wraps)
            let record = try NodeRecord(object, from: .device)
            #expect(record.wraps.count == wraps.count)
            let kinds = record.wraps.map { Array($0.kind.utf8) }
            #expect(kinds == kinds.sorted { $0.lexicographicallyPrecedes($1) })
            #expect(try NodeRecord(record.object, from: .device) == record)
        }
        let wrong: [([JSONValue], RecordFault)] = [
            ([], .noWraps), ([1], .badWrap), ([wrap(1, 61)], .badWrap), ([wrap("q", 61)], .badWrap),
            ([wrap("p", 60)], .badWrap), ([wrap("p", 62)], .badWrap), ([wrap("p", 61, key: "k")], .badWrap),
            ([wrap("p", 61, suite: 0)], .unknownSuite), ([wrap("p", 61, suite: 9)], .unknownSuite),
            ([wrap("u:bob", 81)], .badWrap), ([wrap("u:", 81, key: "k")], .badWrap),
            ([wrap("u:bob", 81, key: "")], .badWrap), ([wrap("u:bob", 81, key: "a b")], .badWrap),
            ([wrap("u:bob", 81, key: nil as JSONValue? ?? .null)], .badWrap),
            ([wrap("u:bob", 81, key: .string(String(repeating: "k", count: 65)))], .badWrap),
            ([wrap("u:a\nb", 81, key: "k")], .badWrap), ([wrap("srv:", 81, key: "k")], .badWrap),
            ([wrap("srv:a/b", 81, key: "k")], .badWrap), ([wrap("pw", 257)], .badWrap), ([wrap("pw", 60)], .badWrap),
            ([wrap("p", 61), wrap("p", 61)], .repeatedWrap),
            ([wrap("u:a", 81, key: "1"), wrap("p", 61), wrap("u:a", 81, key: "2")], .repeatedWrap),
            ([["t": "p", "c": "!"]], .badWrap), ([["t": "p"]], .badWrap),
            ([["t": "p", "c": Self.sealed(61), "z": 1]], .badWrap),
            ((0..<257).map { wrap(.string("u:\($0)"), 81, key: "k") }, .tooManyWraps),
        ]
        for (wraps, fault) in wrong {
            var object = try sample()
            object["w"] = .array(wraps)
            #expect(Self.fault(object) == fault, "\(wraps.prefix(2))")
        }
    }

    @Test("content is inside the record or in a blob, with a length that sealed content can have")
    func data() throws {
        let right: [JSONObject] = [
            ["id": .string(Self.id), "i": Self.sealed(80)], ["id": .string(Self.id), "i": Self.sealed(8_192)],
            ["id": .string(Self.id), "z": 80, "b": .string(Self.id)],
            ["id": .string(Self.id), "z": 200_000, "b": .string(Self.id)],
            ["id": .string(Self.id), "z": 281_543_696_121_840, "b": .string(Self.id)],
        ]
        for data in right {
            var object = try sample()
            object["d"] = .object(data)
            #expect(Self.fault(object) == nil, "\(data)")
        }
        let wrong: [(JSONObject, RecordFault)] = [
            ([:], .badData), (["id": .string(Self.id)], .badData), (["i": Self.sealed(80)], .badData),
            (["id": "x", "i": Self.sealed(80)], .badData),
            (["id": .string(Self.id), "i": Self.sealed(79)], .badInlineSize),
            (["id": .string(Self.id), "i": Self.sealed(8_193)], .badInlineSize),
            (["id": .string(Self.id), "i": ""], .badInlineSize),
            (["id": .string(Self.id), "i": "="], .badBytes(.data)),
            (["id": .string(Self.id), "i": Self.sealed(80), "z": 80], .badData),
            (["id": .string(Self.id), "z": 80], .badData), (["id": .string(Self.id), "z": 80, "b": "b"], .badData),
            (["id": .string(Self.id), "z": 79, "b": .string(Self.id)], .badBlobSize),
            (["id": .string(Self.id), "z": 0, "b": .string(Self.id)], .badBlobSize),
            (["id": .string(Self.id), "z": 65_553, "b": .string(Self.id)], .badBlobSize),
            (["id": .string(Self.id), "z": 65_568, "b": .string(Self.id)], .badBlobSize),
            (["id": .string(Self.id), "z": 9_223_372_036_854_775_807, "b": .string(Self.id)], .badBlobSize),
            (["id": .string(Self.id), "z": -1, "b": .string(Self.id)], .badNumber(.data)),
        ]
        for (data, fault) in wrong {
            var object = try sample()
            object["d"] = .object(data)
            #expect(Self.fault(object) == fault, "\(data)")
        }
    }

    @Test("the length of a blob gives the length of its plain stream, and no other length passes")
    func blobLengths() {
        for plain: UInt64 in [64, 65_535, 65_536, 65_537, 131_072, 1 << 30, (1 << 30) + 1] {
            let sealed = plain + 16 * ((plain + 65_535) / 65_536)
            #expect(RecordData.plainLength(sealed: sealed) == plain)
        }
        #expect(RecordData.plainLength(sealed: .max) == nil && RecordData.plainLength(sealed: 1 << 60) == nil)
    }

    @Test("author, key and signature come together or not at all, and are kept")
    func signature() throws {
        let parts: [(String, JSONValue)] = [("by", Self.user), ("k", "k1"), ("sig", Self.seal64)]
        for mask in 0..<8 {
            var object = try sample()
            for (place, part) in parts.enumerated() where mask >> place & 1 == 1 { object[part.0] = part.1 }
            #expect(Self.fault(object) == (mask == 0 || mask == 7 ? nil : .incompleteSignature))
            if mask == 7 { #expect(try NodeRecord(object, from: .device).signature?.keyID == "k1") }
        }
        let wrong: [(String, JSONValue, RecordFault)] = [
            ("by", "", .badUser(.author)), ("by", .string(String(repeating: "x", count: 257)), .badUser(.author)),
            ("k", "", .badKeyID), ("k", "a b", .badKeyID), ("sig", Self.sealed(63), .badBytes(.signature)),
            ("sig", "AA==", .badBytes(.signature)),
        ]
        for (key, value, fault) in wrong {
            var object = try sample()
            for part in parts { object[part.0] = part.1 }
            object[key] = value
            #expect(Self.fault(object) == fault)
        }
    }

    @Test("a record has at most 64 KiB; the server's stamps come on top")
    func size() throws {
        var object = try sample()
        object.remove("d")
        object["m"] = Self.sealed(29 + 16_384)
        var wraps = [JSONValue]()
        func wrap(_ number: Int, _ length: Int) -> JSONValue {
            let user = "u:\(number)" + String(repeating: "x", count: length)
            return ["t": .string(user), "k": "k", "c": Self.sealed(81)]
        }
        while object.serializedSize < 65_536 - 700 {
            wraps.append(wrap(1_000 + wraps.count, 200))
            object["w"] = .array(wraps)
        }
        let room = 65_536 - object.serializedSize - wrap(1, 0).serializedSize - 1
        for (length, fault): (Int, RecordFault?) in [(room - 230, nil), (room - 229, .tooLarge)] {
            var full = object
            full["w"] = .array(wraps + [wrap(1, 100), wrap(2, length - 100 - wrap(2, 0).serializedSize - 1 + 230)])
            #expect(full.serializedSize == 65_536 + (fault == nil ? 0 : 1))
            #expect(Self.fault(full) == fault)
            full["_t"] = 1_700_000_000_000
            #expect(Self.fault(full, from: .server) == fault)
        }
        let spaces = [UInt8](repeating: 0x20, count: 70_000)
        #expect(throws: RecordFault.tooLarge) { try NodeRecord(parsing: spaces, from: .server) }
    }

    @Test("text that is not one flat JSON object is refused: depth, repeated members, other values, bad UTF-8")
    func texts() throws {
        let text = String(decoding: try sample().serialized(), as: UTF8.self)
        let deep = String(repeating: "[", count: 10_000) + String(repeating: "]", count: 10_000)
        let repeated = "{\"v\":1," + text.dropFirst()
        for wrong in [
            "", "null", "[]", "1", "{", "{}x", deep, "{\"w\":\(deep)}", repeated, String(text.dropLast()), text + "}",
        ] {
            #expect(throws: RecordFault.notJSON) { try NodeRecord(parsing: Array(wrong.utf8), from: .device) }
        }
        #expect(throws: RecordFault.notJSON) {
            try NodeRecord(parsing: Array("{\"p\":\"".utf8) + [0xFF] + Array("\"}".utf8), from: .device)
        }
        #expect(throws: RecordFault.self) { try NodeRecord([:], from: .device) }
    }

    @Test("every fault has a sentence")
    func sentences() {
        let faults: [RecordFault] = [
            .notJSON, .tooLarge, .unknownMember, .stamped, .shareList(.malformed), .otherShareKey, .missing(.tag),
            .wrongType(.tag),
            .badNumber(.base), .badBytes(.metadata), .otherFormat, .badParent, .badTag, .noWraps, .tooManyWraps,
            .badWrap,
            .repeatedWrap, .unknownSuite, .badMetadata, .badData, .badInlineSize, .badBlobSize, .badUser(.author),
            .badKeyID, .incompleteSignature,
        ]
        #expect(Set(faults.map(\.description)).count == faults.count)
        for fault in faults where fault != .tooLarge { #expect(fault.reason.rawValue == "bad-record") }
    }
}

@Suite("Random JSON as records", .noncesGiven)
struct RecordFuzzTests {
    private static func value(_ random: inout SeededRandom, depth: Int = 0) -> JSONValue {
        switch random.next() % (depth < 3 ? 10 : 8) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &random))
        case 2: return .number(JSONNumber(Int64(bitPattern: random.next()) >> (random.next() % 64)))
        case 3:
            return .string(
                ["home", "inbox", "p", "u:bob", "pw", "srv:x", "", "\u{301}"].randomElement(using: &random) ?? "")
        case 4, 5:
            let count = [16, 20, 32, 61, 64, 80, 81, 93].randomElement(using: &random) ?? 1
            return .string(Base64.encodeURL((0..<count).map { _ in UInt8(truncatingIfNeeded: random.next() % 4) }))
        case 6: return .string(NodeID(UInt128(random.next())).text)
        case 7: return .string("beeqscijbeeqscijbeeqscijbeeqscij")
        case 8: return .array((0..<random.next() % 4).map { _ in value(&random, depth: depth + 1) })
        default:
            let keys = ["t", "k", "c", "id", "i", "z", "b", "x"]
            return .object(
                JSONObject(
                    (0..<random.next() % 4).map { _ in
                        (key: keys.randomElement(using: &random) ?? "t", value: value(&random, depth: depth + 1))
                    }))
        }
    }

    /// Changes one to four members, or one byte of the text.
    private static func mutated(_ object: JSONObject, _ random: inout SeededRandom) -> JSONObject {
        var object = object
        for _ in 0...random.next() % 3 {
            let key = RecordKey.allCases.randomElement(using: &random)?.rawValue ?? "v"
            switch random.next() % 6 {
            case 0: object.remove(key)
            case 1:
                guard let text = object[key]?.stringValue, !text.isEmpty else { continue }
                var letters = Array(text.utf8)
                letters[Int(random.next() % UInt64(letters.count))] = UInt8(0x20 + random.next() % 0x5F)
                object[key] = .string(String(decoding: letters, as: UTF8.self))
            case 2:
                guard let element = object[key]?.arrayValue?.first else { continue }
                object[key] = .array([element, value(&random)])
            default: object[key] = value(&random)
            }
        }
        return object
    }

    @Test("100,000 random objects are records or have a fault, and what is read is written so that it is read again")
    func objects() throws {
        var random = SeededRandom(seed: 17)
        let object = try sample()
        var (read, faults) = (0, Set<RecordFault>())
        for round in 0..<100_000 {
            let mutated = round % 20 == 0 ? Self.value(&random).objectValue ?? [:] : Self.mutated(object, &random)
            do throws(RecordFault) {
                let record = try NodeRecord(mutated, from: round % 2 == 0 ? .server : .device)
                read += 1
                let again = try NodeRecord(record.object, from: .server)
                guard again == record else {
                    Issue.record("round \(round): \(mutated)")
                    return
                }
            } catch { faults.insert(error) }
        }
        #expect(read > 1_000 && faults.count > 25, "\(read) read, \(faults.count) kinds of faults")
    }

    @Test("20,000 records with random bytes changed never trap")
    func texts() throws {
        var random = SeededRandom(seed: 18)
        let text = try sample().serialized()
        for _ in 0..<20_000 {
            var changed = text
            for _ in 0...random.next() % 3 {
                let place = Int(random.next() % UInt64(changed.count))
                switch random.next() % 3 {
                case 0: changed[place] = UInt8(truncatingIfNeeded: random.next())
                case 1: changed.remove(at: place)
                default: changed.insert(contentsOf: changed[place...].prefix(5), at: place)
                }
            }
            _ = try? NodeRecord(parsing: changed, from: .server)
        }
    }
}

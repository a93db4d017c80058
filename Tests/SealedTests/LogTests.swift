import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketSealed

@Suite("Log of a sealed object")
struct LogTests {
    private static let place = SealedPlace(owner: "o", app: "a", bucket: "b", serverKey: "k")
    private static let incarnation = [UInt8](1...16)

    private static func log(_ object: JSONObject = ["t": ""]) -> SealedLog {
        SealedLog(place: place, appKey: "note", incarnation: incarnation, object: object)
    }

    private static func clear(
        _ log: SealedLog, base: Int? = nil, author: UInt64 = 1, _ content: SealedOperation.Content
    ) -> [UInt8] {
        let base = base ?? log.position
        return SealedOperation(
            base: base, head: log.chain[base] ?? log.chain.recent[0], incarnation: log.incarnationTag,
            author: .init(rawValue: author), content: content
        ).clearBytes()
    }

    private static func typed(_ text: String, length: Int) -> SealedOperation.Content {
        .edit(.members([.init("t", .text(TextDelta([.retain(length), .insert(Array(text.utf16))])))]))
    }

    /// Bytes in place of a sealed operation: only the chain reads them.
    private static func sealed(_ number: Int) -> [UInt8] { [UInt8(number & 255), UInt8(number >> 8)] }

    private static func grow(_ log: inout SealedLog, to position: Int, author: UInt64 = 1) {
        while log.position < position {
            let length = log.object?["t"]?.stringValue?.utf16.count ?? 0
            let verdict = log.append(
                sealed(log.position), clear: clear(log, author: author, typed("x", length: length)))
            guard case .applied = verdict else {
                Issue.record("not applied: \(verdict)")
                return
            }
        }
    }

    @Test("the clear form of an operation is exact to the byte, and parsing it gives the operation")
    func clearForm() throws {
        let log = Self.log()
        let bytes = Self.clear(log, Self.typed("a", length: 0))
        let head = log.chain.recent[0].text
        #expect(
            String(decoding: bytes, as: UTF8.self)
                == #"{"b":0,"h":"\#(head)","n":"AQIDBAUGBwg","a":"AAAAAAAAAAE","x":{"t":{"o":"d","v":"+a"}}}"#)
        #expect(try SealedOperation(clear: bytes).content == Self.typed("a", length: 0))
        let gone = Self.clear(log, .tombstone)
        #expect(gone.suffix(9).elementsEqual(#","x":"-"}"#.utf8))
        #expect(try SealedOperation(clear: gone).content == .tombstone)
    }

    @Test("an operation whose base is 64 positions back counts, and one whose base is 65 back is void")
    func window() {
        var log = Self.log()
        Self.grow(&log, to: 100)
        var near = log
        let taken = near.append(
            [1], clear: Self.clear(log, base: 37, author: 2, Self.typed("y", length: 37)))
        guard case .applied = taken else { return #expect(Bool(false), "\(taken)") }
        #expect(near.object?["t"]?.stringValue == String(repeating: "x", count: 100) + "y")
        // The text of a smaller author id is in front of what the other author has typed at that place since.
        near = log
        _ = near.append([1], clear: Self.clear(log, base: 37, author: 0, Self.typed("y", length: 37)))
        #expect(
            near.object?["t"]?.stringValue == String(repeating: "x", count: 37) + "y"
                + String(repeating: "x", count: 63))

        let content = Self.typed("y", length: 36)
        let old = SealedOperation(
            base: 36, head: near.chain.recent[0], incarnation: log.incarnationTag, author: .init(rawValue: 2),
            content: content
        ).clearBytes()
        var far = log
        #expect(far.append([1], clear: old) == .void(.tooOld))
        #expect(far.position == 101 && far.object == log.object && far.lastPositions == log.lastPositions)
    }

    @Test("an operation that is sent again is void")
    func replay() {
        var log = Self.log()
        let first = Self.clear(log, Self.typed("x", length: 0))
        Self.grow(&log, to: 3)
        #expect(log.append(Self.sealed(0), clear: first) == .void(.behindAuthor))
        #expect(log.object == ["t": "xxx"])
    }

    @Test("operations of another incarnation, bytes that do not open and malformed operations are void")
    func voids() {
        var log = Self.log()
        let other = SealedLog(
            place: Self.place, appKey: "note", incarnation: .init(repeating: 9, count: 16), object: ["t": ""])
        #expect(log.append([1], clear: Self.clear(other, Self.typed("x", length: 0))) == .void(.otherIncarnation))
        #expect(log.append([2], clear: nil) == .void(.doesNotOpen))
        for text in ["", "[]", "{}", #"{"b":-1}"#, #"{"b":0,"h":"","n":"","a":"","x":{}}"#] {
            #expect(log.append([3], clear: Array(text.utf8)) == .void(.malformed), "\(text)")
        }
        #expect(log.position == 7 && log.object == ["t": ""])
    }

    @Test("unknown rules stop the reader before the operation")
    func unknownRules() {
        var log = Self.log()
        Self.grow(&log, to: 2)
        let before = log
        let text = String(decoding: Self.clear(log, .tombstone), as: UTF8.self)
        #expect(log.append([1], clear: Array((text.dropLast() + #","t":2}"#).utf8)) == .unknownRules)
        #expect(log == before)
        guard case .applied = log.append([1], clear: Array((text.dropLast() + #","t":1}"#).utf8)) else {
            return #expect(Bool(false), "rules 1 may be named")
        }
    }

    @Test("an operation that opens and does not fit changes nothing, but keeps its position and is its author's last")
    func misfits() {
        var log = Self.log(["t": "ab", "n": 1])
        let misfits = [
            Self.typed("x", length: 7), .edit(.members([.init("n", .text(TextDelta.identity(length: 1)))])),
            .edit(.members([.init("q", .increment(1))])), .unreadable,
        ]
        for (number, content) in misfits.enumerated() {
            let verdict = log.append(
                Self.sealed(number), clear: Self.clear(log, content == .unreadable ? .tombstone : content))
            if content == .unreadable { continue }
            guard case .misfit = verdict else { return #expect(Bool(false), "\(verdict)") }
            #expect(log.object == ["t": "ab", "n": 1])
            #expect(log.lastPositions[.init(rawValue: 1)] == log.position)
        }
        // The last operation was a tombstone; an edit whose author knew of it finds no object.
        #expect(log.object == nil)
        guard case .misfit = log.append([9], clear: Self.clear(log, author: 2, Self.typed("x", length: 0))) else {
            return #expect(Bool(false), "an edit of a deleted object")
        }
    }

    @Test("an operation based on another history, or on more than the log holds, stops the reader")
    func forks() {
        var log = Self.log()
        Self.grow(&log, to: 5)
        var other = Self.log()
        Self.grow(&other, to: 4)
        _ = other.append([77], clear: Self.clear(other, Self.typed("z", length: 4)))
        let before = log
        #expect(log.append([1], clear: Self.clear(other, author: 2, Self.typed("y", length: 5))) == .forked(at: 5))
        _ = other.append([78], clear: Self.clear(other, Self.typed("z", length: 5)))
        #expect(log.append([1], clear: Self.clear(other, author: 2, Self.typed("y", length: 6))) == .forked(at: 6))
        #expect(log == before)
    }

    @Test("a chain keeps its last 64 heads and 64 older ones, every 64th; a chain from a snapshot keeps the same")
    func heads() throws {
        var chain = HeadChain(Self.place, incarnation: Self.incarnation)
        var all = [chain.recent[0]]
        for number in 0..<5_000 {
            chain.append(Self.sealed(number))
            all.append(chain.recent[chain.recent.count - 1])
            guard number % 97 == 0 || number < 200 || number > 4_990 else { continue }
            let position = number + 1
            let first = max(0, position - 63)
            let marks = stride(from: 0, to: first, by: 64).map { $0 }
            #expect(chain.keptPositions == marks.suffix(64) + Array(first...position))
            #expect(chain.keptPositions.allSatisfy { chain[$0] == all[$0] })
            #expect(chain[position + 1] == nil && chain[-1] == nil)
            #expect(
                HeadChain(position: position, newest: chain.newest, recent: chain.recent, old: chain.old) == chain)
        }
    }

    @Test("a snapshot gives back the log, and another position, a cut or a missing member makes it invalid")
    func snapshots() throws {
        var log = Self.log(["t": "", "l": [1, 2], "k": "v"])
        Self.grow(&log, to: 30)
        _ = log.append(
            [1], clear: Self.clear(log, author: 7, .edit(.members([.init("k", .remove()), .init("l", .set("all"))]))))
        _ = log.append([2], clear: nil)
        Self.grow(&log, to: 90, author: 3)
        let bytes = SealedSnapshot.clearBytes(of: log)
        #expect(SealedSnapshot.log(clear: bytes, place: Self.place, position: 90) == log)
        #expect(SealedSnapshot.log(clear: bytes, place: Self.place, position: 89) == nil)
        for cut in stride(from: 0, to: bytes.count, by: 101) {
            #expect(SealedSnapshot.log(clear: Array(bytes[..<cut]), place: Self.place, position: 90) == nil)
        }
        let root = try #require(try JSONValue(parsing: bytes).objectValue)
        for key in root.keys {
            var without = root
            without[key] = nil
            let text = JSONValue.object(without).serialized()
            #expect(SealedSnapshot.log(clear: text, place: Self.place, position: 90) == nil, "\(key)")
        }
    }
}

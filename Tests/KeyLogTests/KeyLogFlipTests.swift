import Testing
import ThicketCrypto

@testable import ThicketKeyLog

/// Every bit and every length of every message.
@Suite("Changed bytes of the key log")
struct KeyLogFlipTests {
    private static let key = Ed25519.SigningKey.random()
    private static let now: UInt64 = 3_600_000_000

    private static func flipped(_ bytes: [UInt8], _ bit: Int) -> [UInt8] {
        var changed = bytes
        changed[bit / 8] ^= 0x80 >> UInt8(bit % 8)
        return changed
    }

    /// Ann with a rotation, among others; a new device, and one that has seen only ann's first entry and less of the
    /// log.
    private static func world() throws -> (log: KeyLog, ann: KeyLogPerson, readers: [KeyLogReader]) {
        var ann = try KeyLogPerson("ann", 1)
        var log: KeyLog = try .with(try .init("ben", 1), ann)
        let new = try KeyLogReader(app: "chat", logKey: key.verifyingKey)
        var old = new
        _ = try old.ask("ann", &log, key: key, now: now)
        _ = try log.append(ann.change(.rotation, at: 2_000), now: now)
        return (log, ann, [new, old])
    }

    @Test("a look-up with any bit flipped is refused, raises an alarm, or gives only the true key")
    func lookup() throws {
        var (log, ann, readers) = try Self.world()
        for reader in readers {
            for user in ["ann", "eve"] {
                let bytes = try log.answer(user, reader.question(user), key: Self.key, now: Self.now).bytes
                let isKnown = reader.pinCount > 0
                for bit in 0..<bytes.count * 8 {
                    guard let lookup: KeyLogLookup = try? .init(Self.flipped(bytes, bit)) else { continue }
                    var copy = reader
                    let verdict: KeyLogVerdict = copy.receive(lookup, of: user, now: Self.now)
                    switch verdict {
                    case .refused: break
                    case .absent: #expect(user == "eve")
                    case .verified(let keys, _): #expect(user == "ann" && keys == ann.keys)
                    case .alarm(.fork(let fork)):
                        // A broken proof, which the true one explains.
                        let strength = try fork.check(Self.key.verifyingKey)
                        #expect(isKnown && strength == .unexplained, "bit \(bit)")
                        let isExplained = copy.explain(try log.consistency(older: 4, newer: 6))
                        #expect(isExplained)
                    default: Issue.record("bit \(bit): \(verdict)")
                    }
                    // Nor does it prevent the true answer.
                    if bit % 64 == 0 {
                        let truth = try copy.ask(user, &log, key: Self.key, now: Self.now)
                        #expect(!truth.isAlarm, "bit \(bit)")
                    }
                }
            }
        }
        #expect(try readers[1].ask("ann", &log, key: Self.key, now: Self.now).handedOut == ann.keys)
    }

    @Test("a message that is cut anywhere or longer by a byte is malformed")
    func cut() throws {
        var (log, ann, readers) = try Self.world()
        let other = try HostileLog(key: Self.key, ann.entries.dropLast()).head(1)
        let fork = KeyLogFork(other, try log.head(time: 1, key: Self.key), proof: [.zero, .of([1])])
        var state = readers[1]
        _ = state.compare(other, way: .withheld, now: Self.now)
        let messages: [([UInt8], ([UInt8]) throws -> Void)] = [
            (
                try log.answer("ann", readers[1].question("ann"), key: Self.key, now: 1).bytes,
                { _ = try KeyLogLookup($0) }
            ),
            (
                try log.answer("eve", readers[1].question("eve"), key: Self.key, now: 1).bytes,
                { _ = try KeyLogLookup($0) }
            ),
            (other.bytes, { _ = try KeyLogHead($0) }),
            (try log.consistency(older: 2, newer: 6).bytes, { _ = try KeyLogConsistency($0) }),
            (fork.bytes, { _ = try KeyLogFork($0) }), (state.bytes, { _ = try KeyLogReader($0) }),
        ]
        for (bytes, read) in messages {
            #expect(keyLogRefusal { try read(bytes) } == nil)
            for count in 0..<bytes.count {
                #expect(keyLogRefusal { try read(Array(bytes[..<count])) } == .malformed, "\(count) of \(bytes.count)")
            }
            #expect(keyLogRefusal { try read(bytes + [0]) } == .malformed)
            #expect(keyLogRefusal { try read(bytes + bytes) } != nil)
        }
    }

    @Test("a message has one byte form: a message that is read after a flipped bit is another one")
    func oneForm() throws {
        var (log, ann, readers) = try Self.world()
        let other = try HostileLog(key: Self.key, ann.entries.dropLast()).head(1)
        let fork = KeyLogFork(other, try log.head(time: 1, key: Self.key), proof: [.zero, .of([1])])
        _ = readers[1].compare(other, way: .withheld, now: Self.now)
        let messages = [
            (try log.answer("ann", (from: 0, known: 2), key: Self.key, now: 1).bytes, { try KeyLogLookup($0).bytes }),
            (other.bytes, { try KeyLogHead($0).bytes }),
            (try log.consistency(older: 2, newer: 6).bytes, { try KeyLogConsistency($0).bytes }),
            (fork.bytes, { try KeyLogFork($0).bytes }), (readers[1].bytes, { try KeyLogReader($0).bytes }),
        ]
        for (bytes, read) in messages {
            for bit in 0..<bytes.count * 8 {
                let changed = Self.flipped(bytes, bit)
                guard let again = try? read(changed) else { continue }
                #expect(again == changed, "bit \(bit)")
            }
        }
    }

    @Test("evidence with any bit flipped is refused")
    func evidence() throws {
        let (_, ann, _) = try Self.world()
        let entries = ann.entries
        let (one, other): (HostileLog, HostileLog) = (
            .init(key: Self.key, entries), .init(key: Self.key, [entries[0], try KeyLogPerson("eve", 1).newest])
        )
        let fork = KeyLogFork(try one.head(1), try other.head(2))
        #expect(try fork.check(Self.key.verifyingKey) == .proven)
        for bit in 0..<fork.bytes.count * 8 {
            #expect(
                keyLogRefusal {
                    _ = try KeyLogFork(Self.flipped(fork.bytes, bit)).check(Self.key.verifyingKey)
                } != nil, "bit \(bit)")
        }
    }

    @Test("look-ups and states longer than their bounds, and users twice or out of order, are refused")
    func oversize() throws {
        var (log, _, readers) = try Self.world()
        let answer = try log.answer("ann", (from: 0, known: 2), key: Self.key, now: 1)
        let hashes = [Digest256](repeating: .zero, count: MerkleTree.proofHashesMax + 1)
        for long in [
            answer.with(consistency: hashes), answer.with(mapRootProof: hashes), answer.with(inclusion: hashes),
        ] { #expect(keyLogRefusal { _ = try KeyLogLookup(long.bytes) } == .malformed) }
        let many = [KeyLogEntry](repeating: answer.chain[0], count: KeyLogLimits.entriesMax + 1)
        #expect(keyLogRefusal { _ = try KeyLogLookup(answer.with(chain: many).bytes) } == .tooMany)
        for count in [KeyLogLimits.lookupBytesMax + 1, 8 << 20] {
            let bytes = answer.bytes + [UInt8](repeating: 0, count: count - answer.bytes.count)
            #expect(keyLogRefusal { _ = try KeyLogLookup(bytes) } == .tooMany)
        }
        // A count of users without any users behind it.
        let state = readers[0].bytes
        for count in [1, UInt64(KeyLogLimits.pinsMax), UInt64(KeyLogLimits.pinsMax) + 1, .max] {
            let bytes: [UInt8] = state.dropLast(8) + count.octets
            let refusal: KeyLogError.Kind? = keyLogRefusal { _ = try KeyLogReader(bytes) }
            #expect(refusal == (count == UInt64(KeyLogLimits.pinsMax) + 1 ? .tooMany : .malformed))
        }
        let large = state + [UInt8](repeating: 0, count: KeyLogLimits.stateBytesMax)
        #expect(keyLogRefusal { _ = try KeyLogReader(large) } == .tooMany)
        // The same user twice, and users in another order.
        _ = try readers[1].ask("ben", &log, key: Self.key, now: Self.now)
        let bytes = readers[1].bytes
        let pins = bytes.suffix(2 * (2 + 3 + 8 + 34 + 34 + 34 + 2 + 10))
        let (first, second) = (
            pins.prefix(pins.count / 2), pins.suffix(pins.count / 2)
        )
        let before = bytes.dropLast(pins.count)
        #expect(try KeyLogReader(Array(before) + first + second) == readers[1])
        for pins in [[second, first], [first, first], [second, second]] {
            #expect(keyLogRefusal { _ = try KeyLogReader(Array(before) + pins[0] + pins[1]) } == .malformed)
        }
    }

    @Test("a state with heads that its key has not signed is refused")
    func foreignState() throws {
        let (_, _, readers) = try Self.world()
        var reader = try KeyLogReader(app: "chat", logKey: Ed25519.SigningKey.random().verifyingKey)
        reader.head = readers[1].head
        #expect(keyLogRefusal { _ = try KeyLogReader(reader.bytes) } == .notSigned)
        reader.head = nil
        let head = try #require(readers[1].head)
        reader.fork = .init(head, head)
        #expect(keyLogRefusal { _ = try KeyLogReader(reader.bytes) } == .notSigned)
    }
}

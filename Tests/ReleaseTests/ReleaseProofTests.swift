import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketRelease

/// The log of releases and the proofs made from it (docs/decisions/0047).
@Suite("Releases: log and proofs")
struct ReleaseProofTests {
    static let commit = String(repeating: "4a", count: 20)

    static func manifest(_ number: Int) throws -> ReleaseManifest {
        let files: [ReleaseManifest.File] = ["thicketd", "thicket"].map { name in
            .init(name: name, digest: .of(Array("\(name) \(number)".utf8)), size: Int64(1_000 + number))
        }
        return try ReleaseManifest(release: "0.\(number).0", commit: commit, files: files)
    }

    /// A log of releases 1...count, and its file.
    static func log(_ count: Int, _ key: Ed25519.SigningKey) throws -> (log: ReleaseLog, file: [UInt8]) {
        var (log, file): (ReleaseLog, [UInt8]) = (.init(), [])
        for number in 1...count { file += try log.append(manifest(number), key: key, time: UInt64(number)) }
        return (log, file)
    }

    private static func refusal(_ body: () throws -> Void) -> ReleaseError.Kind? {
        do { try body() } catch { return (error as? ReleaseError)?.kind }
        return nil
    }

    @Test("each release of a log of up to 20 has a valid proof, after every head that may have been seen before")
    func good() throws {
        let key = Ed25519.SigningKey.random()
        let (whole, file) = try Self.log(20, key)
        #expect(try ReleaseLog(file: file, key: key.verifyingKey).heads == whole.heads)
        for count in 1...20 {
            let log = try Self.log(count, key).log
            for number in 1...count {
                let proof = try #require(log.proof(of: "0.\(number).0"))
                #expect(try ReleaseProof(file: proof.file) == proof)
                try proof.check(key.verifyingKey, seen: nil)
                for seen in whole.heads.prefix(count) { try proof.check(key.verifyingKey, seen: seen) }
                #expect(
                    try proof.manifest.file(digest: .of(Array("thicket \(number)".utf8)), size: Int64(1_000 + number))
                        .name == "thicket")
            }
        }
    }

    @Test("a program with another byte or another size is refused as another program")
    func otherProgram() throws {
        let manifest: ReleaseManifest = try Self.manifest(3)
        for (text, size): (String, Int64) in [("thicketd 3", 1_004), ("thicketd 2", 1_003), ("", 0)] {
            #expect(Self.refusal { _ = try manifest.file(digest: .of(Array(text.utf8)), size: size) } == .otherProgram)
        }
    }

    @Test("a head that another key has signed, or of which any member was changed, is refused")
    func otherKey() throws {
        let (key, other): (Ed25519.SigningKey, Ed25519.SigningKey) = (.random(), .random())
        let proof = try #require(try Self.log(5, key).log.proof(of: "0.2.0"))
        #expect(Self.refusal { try proof.check(other.verifyingKey, seen: nil) } == .otherKey)
        let head = try #require(proof.head.json.objectValue)
        for (name, value): (String, JSONValue) in [
            ("size", 6), ("time", 6), ("root", .string(Digest256.zero.description)),
            ("signature", .string(String(repeating: "00", count: 64))),
        ] {
            var changed = head
            changed[name] = value
            let bad = try ReleaseHead(.object(changed))
            #expect(Self.refusal { try bad.check(key.verifyingKey) } == .otherKey, "\(name)")
        }
        // A signature for another use of the same key is not valid for this one.
        let fields: [[UInt8]] = [Self.octets(5), proof.head.root.bytes, Self.octets(5)]
        var changed: JSONObject = head
        changed["signature"] = .string(Hex.encode(try key.signature(for: .head, fields)))
        #expect(Self.refusal { try ReleaseHead(.object(changed)).check(key.verifyingKey) } == .otherKey)
    }

    private static func octets(_ number: UInt64) -> [UInt8] {
        (0..<8).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }

    @Test("a proof that is cut, lengthened, of another place or of another manifest is refused as not included")
    func notIncluded() throws {
        let key = Ed25519.SigningKey.random()
        let log = try Self.log(11, key).log
        for number in 1...11 {
            let proof = try #require(log.proof(of: "0.\(number).0"))
            func with(_ index: UInt64? = nil, _ inclusion: [Digest256]? = nil, _ manifest: ReleaseManifest? = nil)
                -> ReleaseProof
            {
                ReleaseProof(
                    manifest: manifest ?? proof.manifest, index: index ?? proof.index,
                    inclusion: inclusion ?? proof.inclusion, head: proof.head, consistency: proof.consistency)
            }
            var swapped = proof.inclusion
            swapped[0] = .of([1])
            for bad in [
                with(nil, Array(proof.inclusion.dropLast())), with(nil, Array(proof.inclusion.dropFirst())),
                with(nil, []),
                with(nil, proof.inclusion + [.zero]), with(nil, swapped), with(proof.index + 1), with(proof.index ^ 1),
                with(11), with(UInt64.max), with(nil, nil, try Self.manifest(number % 11 + 1)),
                with(nil, nil, try Self.manifest(99)),
            ] {
                #expect(
                    Self.refusal { try bad.check(key.verifyingKey, seen: nil) } == .notIncluded, "release \(number)")
            }
        }
    }

    @Test(
        "a rewritten log, a shorter one and a missing or wrong consistency proof are refused, each with its own code"
    )
    func seenBefore() throws {
        let key = Ed25519.SigningKey.random()
        let log = try Self.log(9, key).log
        let proof: ReleaseProof = try #require(log.proof(of: "0.4.0"))
        // The same key, another history: release 2 was something else.
        var forked = ReleaseLog()
        for number in 1...9 {
            _ = try forked.append(Self.manifest(number == 2 ? 77 : number), key: key, time: UInt64(number))
        }
        for size: Int in 1...9 {
            let seen = forked.heads[size - 1]
            let isSame = seen.root == log.heads[size - 1].root
            #expect(isSame == (size == 1))
            #expect(
                Self.refusal { try proof.check(key.verifyingKey, seen: seen) } == (isSame ? nil : .otherLog), "\(size)")
        }
        let newer = try Self.log(10, key).log.heads[9]
        #expect(Self.refusal { try proof.check(key.verifyingKey, seen: newer) } == .olderHead)
        func with(_ consistency: [UInt64: [Digest256]]) -> ReleaseProof {
            ReleaseProof(
                manifest: proof.manifest, index: proof.index, inclusion: proof.inclusion, head: proof.head,
                consistency: consistency)
        }
        #expect(Self.refusal { try with([:]).check(key.verifyingKey, seen: log.heads[4]) } == .noConsistencyProof)
        for size: UInt64 in 1...8 {
            var ways: [UInt64: [Digest256]] = proof.consistency
            ways[size] = Array(try #require(ways[size]).dropLast())
            let seen = log.heads[Int(size) - 1]
            #expect(Self.refusal { try with(ways).check(key.verifyingKey, seen: seen) } == .otherLog, "cut, \(size)")
            ways[size] = try #require(proof.consistency[size]) + [.zero]
            #expect(Self.refusal { try with(ways).check(key.verifyingKey, seen: seen) } == .otherLog, "long, \(size)")
        }
    }

    @Test("a log's file that was changed, swapped, cut or shortened at its beginning does not open")
    func changedLog() throws {
        let key = Ed25519.SigningKey.random()
        let (_, file) = try Self.log(4, key)
        let lines = file.split(separator: 0x0A).map { Array($0) + [0x0A] }
        func opens(_ bytes: [UInt8]) -> Bool { (try? ReleaseLog(file: bytes, key: key.verifyingKey)) != nil }
        #expect(opens(file) && opens([]) && opens(Array(lines[..<3].joined())))
        #expect(!opens(Array(lines[1...].joined())) && !opens(Array(file.dropLast())))
        #expect(!opens(lines[0] + lines[2] + lines[3]) && !opens(lines[1] + lines[0] + lines[2]))
        var taken = 0
        for place in stride(from: 0, to: file.count, by: 5) {
            var bad = file
            bad[place] ^= 1
            // JSON would allow two forms here: upper case in hex digits means the same.
            if opens(bad) { taken += 1 }
        }
        #expect(taken == 0)
    }

    @Test("malformed manifests, and a release that is already in the log, are refused")
    func manifests() throws {
        let file = ReleaseManifest.File(name: "thicket", digest: .zero, size: 1)
        let bad = [
            ("", Self.commit, [file]), ("0.1 0", Self.commit, [file]), ("0.1.0", "4a", [file]),
            ("0.1.0", String(repeating: "zz", count: 20), [file]), ("0.1.0", Self.commit, []),
            ("0.1.0", Self.commit, [file, file]), ("0.1.0", Self.commit, [.init(name: "a/b", digest: .zero, size: 1)]),
            ("0.1.0", Self.commit, [.init(name: "a", digest: .zero, size: -1)]),
        ]
        for (release, commit, files) in bad {
            #expect(
                Self.refusal { _ = try ReleaseManifest(release: release, commit: commit, files: files) } == .malformed)
        }
        let key = Ed25519.SigningKey.random()
        var log = try Self.log(2, key).log
        #expect(Self.refusal { _ = try log.append(Self.manifest(1), key: key, time: 9) } == .malformed)
        #expect(log.manifests.count == 2)
    }
}

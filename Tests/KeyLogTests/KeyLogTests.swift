import Testing
import ThicketCrypto

@testable import ThicketKeyLog

@Suite("The key log, as a server keeps it")
struct KeyLogTests {
    private static let key = Ed25519.SigningKey.random()

    @Test("each entry makes two leaves: the entry, and behind it the root of the map that contains it")
    func leaves() throws {
        var (ann, ben): (KeyLogPerson, KeyLogPerson) = (try .init("ann", 1), try .init("ben", 1))
        try ann.change(.rotation, at: 2_000)
        let order = [ann.entries[0], ben.entries[0], ann.entries[1]]
        var log = try KeyLog(app: "chat")
        var (leaves, map): ([Digest256], SparseMerkleMap) = ([], .init())
        for (count, entry) in order.enumerated() {
            #expect(try log.append(entry, now: 5_000) == .new)
            map.set(.of(Array(entry.user.utf8)), to: MerkleTree.leafHash(entry.bytes))
            let label: [UInt8] = Array("thicket/map-root/1".utf8) + [0, 0, 32]
            leaves += [MerkleTree.leafHash(entry.bytes), MerkleTree.leafHash(label + map.root.bytes)]
            let head: KeyLogHead = try log.head(time: UInt64(count + 10) * 600_000, key: Self.key)
            #expect(head.size == UInt64(leaves.count) && head.mapRoot == map.root)
            #expect(head.root == Self.root(leaves[...]))
            try head.check(Self.key.verifyingKey)
            #expect(try KeyLogHead(head.bytes) == head)
        }
        #expect(log.userCount == 2)
        try ben.change(.rotation, at: 2_000)
        #expect(log.newestEntry(of: "ann") == ann.newest && log.newestEntry(of: "ben") == ben.entries[0])
        #expect(log.newestEntry(of: "eve") == nil)
    }

    /// RFC 6962, 2.1, literally.
    private static func root(_ leaves: ArraySlice<Digest256>) -> Digest256 {
        guard leaves.count > 1, let first = leaves.indices.first else { return leaves.first ?? .of([]) }
        var half = 1
        while half * 2 < leaves.count { half *= 2 }
        return MerkleTree.nodeHash(root(leaves[first..<first + half]), root(leaves[(first + half)...]))
    }

    @Test("an entry that may not follow is refused with its code and changes nothing")
    func refused() throws {
        var (ann, ben): (KeyLogPerson, KeyLogPerson) = (try .init("ann", 1), try .init("ben", 1))
        let first = ann.newest
        let second = try ann.change(.rotation, at: 2_000)
        var other = try KeyLogPerson("ann", 50)
        var log = try KeyLog(app: "chat")
        func refusal(_ entry: KeyLogEntry, _ isResetAuthorised: Bool = false, now: UInt64 = 9_000) throws
            -> KeyLogError.Kind?
        {
            let (size, entries) = (log.size, log.entries)
            let refusal = keyLogRefusal {
                _ = try log.append(entry, isResetAuthorised: isResetAuthorised, now: now)
            }
            if refusal != nil { #expect(log.size == size && log.entries == entries) }
            return refusal
        }
        // The log is still empty.
        #expect(try refusal(second) == .sequence)
        #expect(try refusal(first) == nil)
        // A second first entry: of other keys, and one that is already in the log.
        #expect(try refusal(other.newest) == .sequence)
        #expect(try refusal(other.change(.rotation, at: 3_000)) == .previous)
        #expect(try refusal(second) == nil)
        #expect(try refusal(first) == .sequence)
        // Resets need an authorisation.
        let third: KeyLogEntry = try ann.change(.reset, at: 3_000)
        #expect(try refusal(third) == .resetNotAuthorised)
        #expect(try refusal(third, true) == nil)
        // Another app, another user's signature, a time in the future.
        let foreign: KeyLogEntry = try .first(
            app: "notes", user: "ben", identity: ben.identity, encryption: ben.encryption.publicKey, validFrom: 1)
        #expect(try refusal(foreign) == .otherApp)
        #expect(
            try refusal(.init(ben.newest.fields, signature: ann.newest.signature, previousSignature: nil)) == .signature
        )
        #expect(try refusal(ben.newest, now: 0) == nil)
        #expect(try refusal(ben.change(.rotation, at: 300_001), now: 0) == .time)
        #expect(try refusal(ben.newest, now: 1) == nil)
        // A user with such a time in the future continues from it.
        #expect(try refusal(ben.change(.rotation, at: 0), now: 0) == nil)
    }

    @Test("an entry that is sent again is known, and the log holds it once")
    func again() throws {
        var ann = try KeyLogPerson("ann", 1)
        var log: KeyLog = try .with(ann)
        #expect(try log.append(ann.newest, now: 9_000) == .known)
        try ann.change(.reset, at: 2_000)
        #expect(try log.append(ann.newest, isResetAuthorised: true, now: 9_000) == .new)
        #expect(try log.append(ann.newest, now: 9_000) == .known)
        #expect(log.size == 4)
    }

    @Test("a user has at most a thousand entries, and the longest answer is within its bound")
    func full() throws {
        var ann = try KeyLogPerson("ann", 1)
        var log: KeyLog = try .with(ann)
        let (one, two) = (
            ann.encryption.publicKey, try KeyLogPerson.opening("ann", 99).publicKey
        )
        var last = ann.newest
        for number in 1..<KeyLogLimits.entriesMax + 1 {
            last = try last.rotated(
                to: ann.identity, encryption: number % 2 == 0 ? one : two, signedBy: ann.identity, validFrom: 1_000)
            let refusal = keyLogRefusal { _ = try log.append(last, now: 9_000) }
            #expect(refusal == (number == KeyLogLimits.entriesMax ? .tooMany : nil), "entry \(number)")
        }
        // The longest answer is read, and fits its bound.
        let answer = try log.answer("ann", (from: 0, known: 2), key: Self.key, now: 1)
        #expect(answer.chain.count == KeyLogLimits.entriesMax)
        #expect(answer.bytes.count <= KeyLogLimits.lookupBytesMax)
        ann = try .init("ann", 1)
    }

    @Test("a head is signed again after a new entry, after ten minutes, and after the clock went back")
    func heads() throws {
        let (ann, ben): (KeyLogPerson, KeyLogPerson) = (try .init("ann", 1), try .init("ben", 1))
        var log = try KeyLog(app: "chat")
        #expect(keyLogRefusal { _ = try log.head(time: 1, key: Self.key) } == .empty)
        _ = try log.append(ann.newest, now: 9_000)
        #expect(try log.head(time: 1_000_000, key: Self.key).time == 1_000_000)
        #expect(try log.head(time: 1_599_999, key: Self.key).time == 1_000_000)
        #expect(try log.head(time: 1_600_000, key: Self.key).time == 1_600_000)
        _ = try log.append(ben.newest, now: 9_000)
        #expect(try log.head(time: 1_600_001, key: Self.key).time == 1_600_001)
        #expect(try log.head(time: 5, key: Self.key).time == 5)
        #expect(keyLogRefusal { _ = try log.head(time: KeyLogLimits.numberBound, key: Self.key) } == .malformed)
    }

    @Test("a question beyond the log's size or a user's entries, or with another head, is refused")
    func impossibleQuestions() throws {
        let (ann, ben): (KeyLogPerson, KeyLogPerson) = (try .init("ann", 1), try .init("ben", 1))
        var log: KeyLog = try .with(ann)
        let old = try log.head(time: 1, key: Self.key)
        _ = try log.append(ben.newest, now: 9_000)
        let head = try log.head(time: 1, key: Self.key)
        #expect(keyLogRefusal { _ = try log.lookup("ann", head: old) } == .otherLog)
        #expect(keyLogRefusal { _ = try log.lookup("ann", known: 6, head: head) } == .otherSize)
        #expect(keyLogRefusal { _ = try log.lookup("ann", known: .max, head: head) } == .otherSize)
        #expect(keyLogRefusal { _ = try log.lookup("ann", from: 1, head: head) } == .sequence)
        #expect(keyLogRefusal { _ = try log.lookup("ann", from: .max, head: head) } == .sequence)
        for (older, newer): (UInt64, UInt64) in [(0, 4), (4, 4), (4, 2), (2, 6), (0, 0), (1, .max)] {
            #expect(keyLogRefusal { _ = try log.consistency(older: older, newer: newer) } == .otherSize)
        }
        let way = try log.consistency(older: 2, newer: 4)
        #expect(try KeyLogConsistency(way.bytes) == way)
    }

    @Test("a log is rebuilt from its entries alone, and tells whether a head agrees with it")
    func rebuilt() throws {
        var ann = try KeyLogPerson("ann", 1)
        try ann.change(.rotation, at: 2_000)
        try ann.change(.reset, at: 3_000)
        var log: KeyLog = try .with(ann, try .init("ben", 1))
        let head = try log.head(time: 1, key: Self.key)
        let again = try KeyLog(app: "chat", entries: log.entries)
        #expect(again.agrees(with: head) && again.size == log.size)
        // Omitted or swapped entries, or another app: not a log, or another one.
        #expect(keyLogRefusal { _ = try KeyLog(app: "chat", entries: Array(log.entries.dropFirst())) } == .sequence)
        #expect(keyLogRefusal { _ = try KeyLog(app: "notes", entries: log.entries) } == .otherApp)
        #expect(try !KeyLog(app: "chat", entries: Array(log.entries.dropLast())).agrees(with: head))
        var swapped = log.entries
        swapped.swapAt(2, 3)
        #expect(try !KeyLog(app: "chat", entries: swapped).agrees(with: head))
    }
}

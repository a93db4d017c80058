import Testing
import ThicketCrypto

@testable import ThicketTreesystem

@Suite("Upload machine")
struct UploadMachineTests {
    /// The range of a part of 4 MiB.
    private static func part(_ number: UInt64) -> Range<UInt64> { number << 22..<(number + 1) << 22 }

    @Test("parts have 4 MiB up to 10,000 parts, then whole MiB up to 16, and a longer content is too large")
    func plan() {
        let mebibyte: UInt64 = 1 << 20
        for (length, expected): (UInt64, Int?) in [
            (1, 4), (39_999 * mebibyte, 4), (40_000 * mebibyte, 5), (50_001 * mebibyte, 6),
            (159_999 * mebibyte, 16), (170_000 * mebibyte, nil), (.max / 2, nil),
        ] {
            let part = UploadMachine.partBytes(for: length)
            #expect(part == expected.map { $0 << 20 }, "\(length)")
            if let part { #expect((length + UInt64(part) - 1) / UInt64(part) <= UInt64(TransferLimits.partsMax)) }
        }
    }

    @Test("the state is read back as it was written, and other bytes begin the upload again")
    func state() throws {
        var machine = UploadMachine(length: 9 << 20)
        #expect(UploadMachine(octets: machine.octets, length: 9 << 20)?.octets == machine.octets)
        _ = machine.next(now: 0)
        machine.handle(.begun(BlobUpload(id: "abc", partBytes: 4 << 20)), now: 0, random: 0)
        let octets = machine.octets
        #expect(octets.count == 16)
        var again = try #require(UploadMachine(octets: octets, length: 9 << 20))
        #expect(again.octets == octets && again.next(now: 0) == [.askStatus(upload: "abc")])
        #expect(UploadMachine(octets: octets, length: 8 << 20) == nil, "of another content")
        for count in 0..<octets.count where count != 9 {
            let cut = UploadMachine(octets: Array(octets[..<count]), length: 9 << 20)
            #expect(cut == nil || count > 13)
        }
        #expect(UploadMachine(octets: [2] + octets.dropFirst(), length: 9 << 20) == nil)
        #expect(UploadMachine(octets: octets + [UInt8](repeating: 97, count: 99), length: 9 << 20) == nil)
    }

    @Test("after a lost answer no part is sent before the server was asked which it has, and none in flight is missed")
    func lostAnswer() {
        var machine = UploadMachine(length: 20 << 20, inFlightMax: 3)
        _ = machine.next(now: 0)
        machine.handle(.begun(BlobUpload(id: "u", partBytes: 4 << 20)), now: 0, random: 0)
        #expect(machine.next(now: 0).count == 3)
        machine.handle(.failed(.lost, part: 1), now: 0, random: 0)
        #expect(machine.next(now: 0).isEmpty && machine.next(now: 60_000).isEmpty, "two parts may still arrive")
        machine.handle(.sent(part: 0, sha256: [0]), now: 0, random: 0)
        machine.handle(.sent(part: 2, sha256: [2]), now: 0, random: 0)
        #expect(machine.next(now: 0).isEmpty, "a pause")
        #expect(machine.next(now: 60_000) == [.askStatus(upload: "u")])
        machine.handle(.status(BlobUploadStatus(parts: [0: [0], 1: [1], 2: [2], 9: [9]])), now: 0, random: 0)
        let actions = machine.next(now: 60_000)
        let expected: [UploadMachine.Action] = [
            .hash(part: 1, Self.part(1)), .send(upload: "u", part: 3, Self.part(3)),
            .send(upload: "u", part: 4, Self.part(4)),
        ]
        #expect(actions == expected)
        machine.handle(.hashed(part: 1, sha256: [1]), now: 0, random: 0)
        #expect(machine.next(now: 60_000).isEmpty && machine.bytes == 12 << 20)
        for part in [3, 4] { machine.handle(.sent(part: part, sha256: [UInt8(part)]), now: 0, random: 0) }
        let proof = Hash.sha256([0, 1, 2, 3, 4])
        #expect(machine.next(now: 60_000) == [.complete(upload: "u", sha256: proof)])
    }

    @Test("a part whose hash at the server differs from the file's: the upload is given up, and another one begins")
    func changedPart() {
        var machine = UploadMachine(length: 8 << 20)
        _ = machine.next(now: 0)
        machine.handle(.begun(BlobUpload(id: "u", partBytes: 4 << 20)), now: 0, random: 0)
        _ = machine.next(now: 0)
        machine.handle(.failed(.lost, part: 0), now: 0, random: 0)
        machine.handle(.sent(part: 1, sha256: [1]), now: 0, random: 0)
        _ = machine.next(now: 60_000)
        machine.handle(.status(BlobUploadStatus(parts: [0: [9], 1: [1]])), now: 0, random: 0)
        #expect(machine.next(now: 60_000) == [.hash(part: 0, Self.part(0))])
        machine.handle(.hashed(part: 0, sha256: [0]), now: 0, random: 0)
        #expect(machine.next(now: 60_000).isEmpty && machine.uploadID == nil)
        #expect(machine.next(now: 60_000) == [.abort(upload: "u")])
        machine.handle(.aborted, now: 60_000, random: 0)
        #expect(machine.next(now: 60_000) == [.begin(partBytes: 4 << 20)])
    }

    @Test("a server without space is the trouble until it accepts bytes again, and the error when it never does")
    func fullServer() {
        var machine = UploadMachine(length: 8 << 20)
        _ = machine.next(now: 0)
        machine.handle(.failed(.full(after: nil), part: nil), now: 0, random: 0)
        #expect(machine.trouble == .serverFull && machine.outcome == nil)
        #expect(machine.next(now: 60_000) == [.begin(partBytes: 4 << 20)])
        machine.handle(.begun(BlobUpload(id: "u", partBytes: 4 << 20)), now: 60_000, random: 0)
        _ = machine.next(now: 60_000)
        machine.handle(.sent(part: 0, sha256: [0]), now: 60_000, random: 0)
        #expect(machine.trouble == nil)
        var (now, part) = (Int64(60_000), Int?(1))
        while machine.outcome == nil {
            machine.handle(.failed(.full(after: nil), part: part), now: now, random: 0)
            now += 60_000
            part = machine.next(now: now).contains(.askStatus(upload: "u")) ? nil : 1
        }
        #expect(machine.outcome == .failure(.serverFull))
    }
}

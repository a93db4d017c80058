import Synchronization
import Testing
import ThicketCrypto
import ThicketNonces
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Uploads", .nonceWatch)
struct UploadTests {
    private struct Case {
        let folder = ContentFolder()
        let server = FakeBlobServer()
        let clock: JumpingClock
        let file: SealedFile
        let sealed: [UInt8]
        let digest: [UInt8]

        init(_ seed: UInt64, bytes: Int = 18 << 20) async throws {
            clock = JumpingClock(seed)
            let writer = try SpoolWriter.make(folder, seed: seed, padding: .none)
            let data = [UInt8](repeating: UInt8(truncatingIfNeeded: seed), count: bytes)
            file = try #require(await writer.write(NodeSections(data: .bytes(data))) { $0.text }.blob).file
            sealed = ContentFolder.bytes(file.path)
            digest = Hash.sha256(sealed)
        }

        func uploader() throws -> Uploader { try Uploader(server, clock: clock.clock) }
        /// Whether the blob has the file's bytes. Compared by a hash, because debug builds compare bytes slowly.
        func isStored(_ blob: BlobID, at server: FakeBlobServer) -> Bool {
            server.state.withLock { $0.blobs[blob] }.map { Hash.sha256($0) } == digest
        }
        func isStored(_ blob: BlobID) -> Bool { isStored(blob, at: server) }
    }

    @Test("C6: a content of five parts is sent with one in flight and in memory, and each part once")
    func parts() async throws {
        let test = try await Case(1)
        let uploader = try test.uploader()
        let blob = try await uploader.upload(test.file)
        #expect(test.isStored(blob))
        #expect(test.server.count("part") == 5 && test.server.count("begin") == 1)
        #expect(test.server.count("complete") == 1 && test.server.requestCount == 7)
        #expect(test.server.state.withLock(\.inFlightMost) <= TransferLimits.partsInFlightMax)
        #expect(uploader.buffers.value.now == 0 && uploader.buffers.value.most <= TransferLimits.partsInFlightMax)
    }

    @Test("a content of one part is sent in one request")
    func whole() async throws {
        let test = try await Case(2, bytes: 100_000)
        let blob = try await test.uploader().upload(test.file)
        #expect(test.isStored(blob) && test.server.requestCount == 1)
    }

    @Test("Q19: progress grows, and ends at the total, also when the upload begins again", arguments: [false, true])
    func progress(expires: Bool) async throws {
        let test = try await Case(3)
        let values = Mutex([TransferProgress]())
        if expires {
            let count = Atomic(0)
            test.server.set { state in
                state.before = { name in
                    guard name == "part", count.add(1, ordering: .relaxed).newValue == 4 else { return }
                    test.server.set { $0.uploads = [:] }
                }
            }
        }
        _ = try await test.uploader().upload(test.file, progress: { value in values.withLock { $0.append(value) } })
        let all = values.withLock { $0 }
        #expect(zip(all, all.dropFirst()).allSatisfy { $0.bytes <= $1.bytes })
        #expect(all.allSatisfy { $0.total == UInt64(test.sealed.count) })
        #expect(all.last?.bytes == all.last?.total && all.last?.remaining == 0)
        #expect(test.server.count("begin") == (expires ? 2 : 1))
    }

    @Test(
        "C6: 25 seeds of dropped, lost, repeated and refused requests: equal content, no part stored twice needlessly")
    func faults() async throws {
        var faulty = 0
        let test = try await Case(4, bytes: 30 << 20)
        for seed in UInt64(0)..<25 {
            let (server, random, clock) = (FakeBlobServer(), ContentSeed(seed), JumpingClock(seed))
            server.set { state in
                state.fate = { name in
                    switch random.below(14) {
                    case 0: .dropped
                    case 1: .answerLost
                    case 2: .repeated
                    case 3: .busy
                    default: .fine
                    }
                }
            }
            let blob = try await Uploader(server, clock: clock.clock).upload(test.file)
            #expect(test.isStored(blob, at: server))
            let state = server.state.withLock { $0 }
            faulty += state.faults
            #expect(state.needless == 0, "seed \(seed): the client sent a part that had arrived")
            let sent = state.requests["part"] ?? 0
            let needed = (test.sealed.count + TransferLimits.partBytes - 1) / TransferLimits.partBytes
            let begun = state.requests["begin"] ?? 0
            #expect(sent <= needed + state.faults && begun <= 1 + state.faults, "seed \(seed)")
            #expect(state.requests.values.reduce(0, +) <= 2 * needed + 4 * (state.faults + 1), "no storm: seed \(seed)")
        }
        #expect(faulty > 25, "\(faulty)")
    }

    @Test(
        "C6: kills of the client in 20 uploads: it goes on from its state, and no part that has arrived is sent again")
    func restarts() async throws {
        let test = try await Case(5, bytes: 26 << 20)
        let needed = (test.sealed.count + TransferLimits.partBytes - 1) / TransferLimits.partBytes
        for seed in UInt64(0)..<20 {
            let (server, random) = (FakeBlobServer(), ContentSeed(seed))
            let row = OperationRow()
            var (result, kills) = (BlobID?.none, 0)
            while result == nil {
                let (gate, limit) = (TestGate(), server.count("part") + 1 + random.below(4))
                // The request that reaches the limit waits until the client is gone.
                server.set { state in
                    state.before = { name in
                        if name == "part", server.count("part") >= limit { await gate.pass() }
                    }
                }
                let clock = JumpingClock(seed)
                let (uploader, file) = (try Uploader(server, clock: clock.clock), test.file)
                let task = Task {
                    try await uploader.upload(file, state: row.state, save: { row.state = $0 })
                }
                let killer = Task {
                    await gate.arrivals(1)
                    task.cancel()
                    gate.open()
                }
                result = try? await task.value
                gate.open()
                if result == nil { kills += 1 } else { await gate.pass() }
                await killer.value
            }
            #expect(test.isStored(result ?? BlobID(0), at: server))
            #expect(server.count("begin") == 1 && kills > 0)
            let received = server.state.withLock { $0.received.values.reduce(0, +) }
            #expect(received == needed, "seed \(seed): no part arrived twice in \(kills) kills")
        }
    }

    @Test("C7: a lost answer to complete is asked for again, and gives the same blob")
    func completeTwice() async throws {
        let test = try await Case(6)
        let count = Atomic(0)
        test.server.set { state in
            state.fate = { name in
                name == "complete" && count.add(1, ordering: .relaxed).newValue <= 3 ? .answerLost : .fine
            }
        }
        let blob = try await test.uploader().upload(test.file)
        #expect(test.isStored(blob) && test.server.state.withLock(\.blobs).count == 1)
        #expect(test.server.count("complete") == 4 && test.server.count("part") == 5)
    }

    @Test("C7: a client that ended before the answer to complete finds its blob, and sends nothing again")
    func completeBeforeRestart() async throws {
        let test = try await Case(12)
        let row = OperationRow()
        test.server.set { $0.fate = { $0 == "complete" ? .answerLost : .fine } }
        await #expect(throws: ContentError.unreachable) {
            try await test.uploader().upload(test.file, save: { row.state = $0 })
        }
        let requests = test.server.requestCount
        let blob = try await test.uploader().upload(test.file, state: row.state)
        #expect(test.isStored(blob) && test.server.requestCount == requests + 1)
        try await test.uploader().abort(row.state, of: test.file)
        #expect(test.server.state.withLock(\.uploads).isEmpty)
    }

    @Test("an upload that the server forgets begins again, and fails as notFound when that goes on")
    func forgotten() async throws {
        let test = try await Case(7)
        test.server.set { state in
            state.before = { name in if name == "complete" { test.server.set { $0.uploads = [:] } } }
        }
        await #expect(throws: ContentError.notFound) { try await test.uploader().upload(test.file) }
        #expect(test.server.count("begin") == TransferLimits.restartsMax + 1)
    }

    @Test(
        "a server that never answers is asked nine times, with pauses that grow to between half and all of their step")
    func unreachable() async throws {
        let test = try await Case(8)
        test.server.set { $0.fate = { _ in .dropped } }
        await #expect(throws: ContentError.unreachable) { try await test.uploader().upload(test.file) }
        #expect(test.server.requestCount == TransferLimits.failuresMax + 1)
        let steps = (0..<TransferLimits.failuresMax).map { min(TransferLimits.pauseMax, TransferLimits.pauseMin << $0) }
        #expect(test.clock.pauses.count == steps.count)
        for (pause, step) in zip(test.clock.pauses, steps) { #expect(pause <= step && pause >= step / 2 - 20) }
    }

    @Test("a busy server is asked again after the time that it names; a refusal for good ends the upload")
    func refusals() async throws {
        let test = try await Case(9)
        let count = Atomic(0)
        test.server.set { state in
            state.fate = { _ in count.add(1, ordering: .relaxed).newValue == 1 ? .busy : .fine }
        }
        _ = try await test.uploader().upload(test.file)
        #expect(test.clock.pauses.count == 1 && (test.clock.pauses.first ?? 0) > 1_900)
        var machine = UploadMachine(length: 9 << 20)
        #expect(machine.next(now: 0) == [.begin(partBytes: 4 << 20)])
        machine.handle(.failed(.refused(413), part: nil), now: 0, random: 0)
        #expect(machine.outcome == .failure(.refused(413)) && machine.next(now: .max).isEmpty)
    }

    @Test("a paused upload makes no request until it goes on; one that is cancelled while paused ends")
    func pause() async throws {
        let test = try await Case(10)
        let (control, gate) = (UploadControl(), TestGate())
        test.server.set { state in
            state.before = { name in
                guard name == "begin" else { return }
                control.pause()
                await gate.pass()
            }
        }
        let task = Task { try await test.uploader().upload(test.file, control: control) }
        await gate.arrivals(1)
        #expect(test.server.requestCount == 1)
        gate.open()
        while !control.isWaiting { await pauseBetweenLooks() }
        #expect(test.server.requestCount == 1)
        control.resume()
        let blob = try await task.value
        #expect(test.isStored(blob))
        control.pause()
        let second = Task { try await test.uploader().upload(test.file, control: control) }
        while !control.isWaiting { await pauseBetweenLooks() }
        second.cancel()
        await #expect(throws: ContentError.cancelled) { try await second.value }
    }

    @Test("A18: a part that the server has with other bytes is not used: the upload begins again")
    func otherPart() async throws {
        let test = try await Case(11)
        let count = Atomic(0)
        test.server.set { state in
            state.before = { name in
                guard name == "part", count.add(1, ordering: .relaxed).newValue == 1 else { return }
                test.server.set { state in
                    for id in state.uploads.keys {
                        for part in 0..<4 { state.uploads[id]?.parts[part] = [UInt8](repeating: 0, count: 4 << 20) }
                    }
                }
            }
        }
        let blob = try await test.uploader().upload(test.file)
        #expect(test.isStored(blob) && test.server.count("begin") == 2)
        #expect(test.server.count("abort") == 1, "the useless upload is given up")
    }
}

/// Where an upload's state survives the client.
private final class OperationRow: Sendable {
    private let octets = Mutex([UInt8]())
    var state: [UInt8] {
        get { octets.withLock { $0 } }
        set { octets.withLock { $0 = newValue } }
    }
}

import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketSealed

/// A server or a member lies: a device reports each lie and shows nothing of it as genuine.
@Suite("Lies about sealed objects")
struct HostileTests {
    /// An honest history of three devices, and what the server holds after it.
    private struct Story {
        let sealer = ClearSealer()
        let place = SealedPlace(owner: "o", app: "a", bucket: "b", serverKey: "k")
        var random: SeededRandom
        var devices = [SealedObject]()
        var operations = [[UInt8]]()
        let first: [UInt8]
        var letters = Letters()

        init(seed: UInt64, devices count: Int = 3) {
            random = SeededRandom(seed: seed)
            let log = SealedLog(
                place: place, appKey: "key", incarnation: random.bytes(16), object: ["t": .string(letters.insert(5))])
            for number in 0..<count {
                devices.append(SealedObject(author: .init(rawValue: UInt64(10 + number)), log: log))
            }
            first = devices[0].sealedSnapshot(id: random.bytes(16), nonce: [], with: sealer)
        }

        /// The next operation of a device; no device has received it yet.
        mutating func write(_ device: Int) -> [UInt8] {
            let object = devices[device].object ?? [:]
            let delta = TextDelta([
                .insert(Array(letters.insert(2).utf16)), .retain(object["t"]?.stringValue?.utf16.count ?? 0),
            ])
            try? devices[device].edit(ObjectDiff([(key: "t", operation: .text(delta))]))
            return devices[device].seal(changeID: random.bytes(16), nonce: [], with: sealer)?.sealed ?? []
        }

        /// Honest operations of random devices, received by all.
        mutating func go(_ count: Int) -> [SealedEvent] {
            var events = [SealedEvent]()
            for _ in 0..<count {
                let sealed = write(random.below(devices.count))
                operations.append(sealed)
                for device in devices.indices { events += devices[device].receive(sealed, with: sealer) }
            }
            return events
        }

        /// The object as a server shows it with these operations.
        func entity(_ operations: [[UInt8]], snapshots: [Int: [UInt8]]? = nil) -> SealedEntity {
            let named = snapshots ?? [0: first]
            return SealedEntity(
                snapshots: named.mapValues { Base64.encodeURL($0) },
                tail: operations.reversed().map { Base64.encodeURL($0) })
        }
    }

    private static func integrity(_ events: [SealedEvent]) -> [SealedIntegrity] {
        events.compactMap { if case .integrity(let integrity) = $0 { integrity } else { nil } }
    }

    private static let seeds: Range<UInt64> = 0..<10

    private static func honest(_ seed: UInt64, devices: Int = 3) -> Story {
        var story = Story(seed: seed, devices: devices)
        let events = story.go(1 + story.random.below(90))
        #expect(integrity(events) == [], "a false alarm")
        return story
    }

    @Test("an operation withheld from one device is found with the next operation of another", arguments: seeds)
    func drop(seed: UInt64) {
        var story = Self.honest(seed)
        let at = story.operations.count
        let dropped = story.write(0)
        for device: Int in 0...1 { _ = story.devices[device].receive(dropped, with: story.sealer) }
        let before = story.devices[2]
        let next = story.write(1)
        let events = story.devices[2].receive(next, with: story.sealer)
        #expect(Self.integrity(events) == [.forked(at: at + 1)])
        #expect(story.devices[2].object == before.object && story.devices[2].log == before.log)
        #expect(throws: SealedEditError.readOnly) { try story.devices[2].edit(ObjectDiff()) }
    }

    @Test("two operations in another order for one device are reported as a fork", arguments: seeds)
    func reorder(seed: UInt64) {
        var story = Self.honest(seed)
        let at = story.operations.count
        let (one, two) = (story.write(0), story.write(1))
        for sealed in [one, two] {
            for device: Int in 0...1 { _ = story.devices[device].receive(sealed, with: story.sealer) }
        }
        for sealed in [two, one] { _ = story.devices[2].receive(sealed, with: story.sealer) }
        let (shown, next) = (story.devices[2].object, story.write(0))
        let reported = Self.integrity(story.devices[2].receive(next, with: story.sealer))
        #expect(reported == [.forked(at: at + 2)])
        #expect(story.devices[2].object == shown)
        // A device that is shown the other's whole object reports the position where the two part.
        let answer = Self.integrity(
            story.devices[1].adopt(story.entity(story.operations + [two, one]), with: story.sealer))
        #expect(answer == [.forked(at: at + 1)])
    }

    @Test("an operation that is sent again is reported as repeated and changes nothing", arguments: seeds)
    func replay(seed: UInt64) {
        var story = Self.honest(seed)
        _ = story.go(3)
        let sealed = story.operations[story.random.below(story.operations.count)]
        for device in story.devices.indices {
            let shown = story.devices[device].object
            let reported = Self.integrity(story.devices[device].receive(sealed, with: story.sealer))
            #expect(reported == [.misfit(at: story.operations.count + 1, .repeated)])
            #expect(story.devices[device].object == shown)
        }
    }

    @Test(
        "an operation of another object, cut bytes and foreign bytes are reported as not opening",
        arguments: seeds)
    func swap(seed: UInt64) {
        var story = Self.honest(seed)
        let position = story.operations.count
        let genuine = story.operations[0]
        let clear = story.sealer.open(genuine, kind: .operation, position: 0)?.clear ?? []
        let other = ClearSealer(object: 1).seal(
            clear, kind: .operation, id: story.random.bytes(16), position: 0, nonce: [])
        let lies = [other, Array(genuine.dropLast()), story.random.bytes(100), []]
        for (number, lie) in lies.enumerated() {
            let reported = Self.integrity(story.devices[1].receive(lie, with: story.sealer))
            #expect(reported == [.misfit(at: position + 1 + number, .doesNotOpen)])
        }
        #expect(story.devices[1].object == story.devices[0].object)
    }

    @Test("an older state or incarnation is reported as rolled back and not shown", arguments: seeds)
    func rollBack(seed: UInt64) {
        var story = Self.honest(seed)
        _ = story.go(2)
        let old = story.operations.count - 1 - story.random.below(story.operations.count - 1)
        let shown = story.devices[0].object
        let reported = Self.integrity(
            story.devices[0].adopt(story.entity(Array(story.operations[..<old])), with: story.sealer))
        #expect(reported == [.rolledBack(to: old)])
        #expect(story.devices[0].object == shown)
        // An older incarnation is an older state too.
        guard var again = story.devices[1].keepingMine(incarnation: story.random.bytes(16)) else {
            return
        }
        #expect(
            Self.integrity(again.adopt(story.entity(story.operations), with: story.sealer))
                == [.rolledBack(to: 0)])
        #expect(again.object == shown)
    }

    @Test("each side of a fork reports it at the first operation of the other side", arguments: seeds)
    func fork(seed: UInt64) {
        var story = Self.honest(seed)
        let at = story.operations.count
        let (one, two) = (story.write(0), story.write(1))
        _ = story.devices[0].receive(one, with: story.sealer)
        _ = story.devices[1].receive(two, with: story.sealer)
        _ = story.devices[2].receive(one, with: story.sealer)
        let (mine, theirs) = (story.write(0), story.write(1))
        #expect(Self.integrity(story.devices[1].receive(mine, with: story.sealer)) == [.forked(at: at + 1)])
        #expect(Self.integrity(story.devices[0].receive(theirs, with: story.sealer)) == [.forked(at: at + 1)])
        #expect(Self.integrity(story.devices[2].receive(theirs, with: story.sealer)) == [.forked(at: at + 1)])
    }

    @Test("a member's operation that opens and does not fit is reported and changes nothing", arguments: seeds)
    func misfit(seed: UInt64) {
        var story = Self.honest(seed)
        let log = story.devices[0].log
        let wrong = SealedOperation(
            base: log.position, head: log.chain.recent[log.chain.recent.count - 1], incarnation: log.incarnationTag,
            author: .init(rawValue: 77), content: .edit(.members([.init("t", .increment(1))])))
        let sealed = story.sealer.seal(
            wrong.clearBytes(), kind: .operation, id: story.random.bytes(16), position: 0, nonce: [])
        let reported = Self.integrity(story.devices[1].receive(sealed, with: story.sealer))
        #expect(reported == [.misfit(at: log.position + 1, .doesNotFit)])
        #expect(story.devices[1].object == story.devices[0].object && story.devices[1].problem == nil)
    }

    @Test(
        "a snapshot with other content, another position, foreign bytes or another chain is reported",
        arguments: seeds)
    func wrongSnapshot(seed: UInt64) throws {
        var story = Self.honest(seed)
        _ = story.go(3)
        let middle = 1 + story.random.below(story.operations.count - 1)
        func replayed(_ count: Int) -> SealedLog {
            var log = SealedSnapshot.log(
                clear: story.sealer.open(story.first, kind: .snapshot, position: 0)?.clear ?? [], place: story.place,
                position: 0)
            for sealed in story.operations[..<count] {
                _ = log?.append(sealed, clear: story.sealer.open(sealed, kind: .operation, position: 0)?.clear)
            }
            return log ?? story.devices[0].log
        }
        func sealed(_ log: SealedLog, at position: Int) -> [UInt8] {
            story.sealer.seal(
                SealedSnapshot.clearBytes(of: log), kind: .snapshot, id: .init(repeating: 1, count: 16),
                position: position, nonce: [])
        }
        let tail = Array(story.operations[middle...])
        let genuine = replayed(middle)
        var device = story.devices[0]
        let right = story.entity(tail, snapshots: [middle: sealed(genuine, at: middle)])
        #expect(device.adopt(right, with: story.sealer) == [], "a false alarm")

        var content = genuine
        content.object?["more"] = 1
        var authors = genuine
        authors.lastPositions[.init(rawValue: 99)] = 1
        let lies = [
            sealed(content, at: middle), sealed(authors, at: middle), sealed(replayed(middle - 1), at: middle),
            sealed(genuine, at: middle + 1), story.random.bytes(300),
        ]
        for lie in lies {
            device = story.devices[0]
            let reported = device.adopt(story.entity(tail, snapshots: [middle: lie]), with: story.sealer)
            #expect(Self.integrity(reported) == [.snapshotMismatch(at: middle)])
            #expect(device.object == story.devices[0].object)
        }
        // A snapshot ahead of a device: its operations in between must lead to its content.
        var window = genuine
        window.window[window.window.count - 1] = nil
        for lie in [content, window] {
            device = SealedObject(author: .init(rawValue: 50), log: replayed(max(0, middle - 60)))
            if lie == window, genuine.window[genuine.window.count - 1] == nil { continue }
            let shown = device.object
            let entity = story.entity(tail, snapshots: [middle: sealed(lie, at: middle)])
            #expect(Self.integrity(device.adopt(entity, with: story.sealer)) == [.snapshotMismatch(at: middle)])
            #expect(device.object == shown)
        }
        // A snapshot of another chain, ahead of every device.
        var other = Story(seed: seed)
        _ = other.go(story.operations.count + 5)
        device = story.devices[0]
        let ahead = other.devices[0].log
        let reported = device.adopt(
            story.entity([], snapshots: [ahead.position: sealed(ahead, at: ahead.position)]), with: story.sealer)
        #expect(Self.integrity(reported).count == 1 || ahead.chain.firstDifference(to: device.log.chain) == nil)
    }

    @Test("an object removed without a tombstone is reported and stays visible; with a tombstone it is deleted")
    func removal() throws {
        var story = Self.honest(7)
        let shown = story.devices[0].object
        #expect(Self.integrity(story.devices[0].serverRemoved()) == [.removed])
        #expect(story.devices[0].object == shown)

        try story.devices[1].delete()
        let made = story.devices[1].seal(
            changeID: story.random.bytes(16), nonce: [], with: story.sealer)
        let sealed = try #require(made?.sealed)
        _ = story.devices[1].receive(sealed, with: story.sealer)
        _ = story.devices[2].receive(sealed, with: story.sealer)
        #expect(story.devices[2].object == nil && story.devices[2].serverRemoved() == [])
        #expect(throws: SealedEditError.deleted) { try story.devices[2].edit(ObjectDiff()) }
    }

    @Test("clear text in the place of a sealed object is reported and not shown")
    func clear() {
        var story = Self.honest(8)
        #expect(throws: SealedShapeError.self) { try SealedEntity(["title": "hello"]) }
        #expect(throws: SealedShapeError.self) { try SealedEntity(["z": 1, "s": [:], "d": []]) }
        for shape: JSONValue in [0, -2, "2", .null, 1.5] {
            #expect(throws: SealedShapeError(.otherMembers)) {
                try SealedEntity(["z": shape, "s": ["0": "a"], "d": []])
            }
        }
        let shown = story.devices[0].object
        #expect(Self.integrity(story.devices[0].serverShowedClear()) == [.clear])
        #expect(story.devices[0].object == shown)
    }

    @Test("a newer shape is not clear text: the object stops until the known shape is shown, and reports that once")
    func newerShape() throws {
        for object: JSONObject in [["z": 2], ["z": 2, "s": ["0": "a"], "d": []], ["z": 9, "title": "hello"]] {
            #expect(throws: SealedShapeError(.newerShape)) { try SealedEntity(object) }
            #expect(throws: SealedShapeError(.newerShape)) { try SealedShape.check(object: object) }
        }
        #expect(SealedShapeError(.newerShape).code == .invalidRequest)
        var story = Self.honest(8)
        let known = story.devices[0]
        #expect(story.devices[0].serverShowedNewerShape() == [.stopped(after: nil)])
        #expect(story.devices[0].serverShowedNewerShape().isEmpty && story.devices[0].isStopped)
        #expect(story.devices[0].problem == nil && story.devices[0].object == known.object)
        #expect(throws: SealedEditError.readOnly) { try story.devices[0].delete() }
        let kept = story.devices[0].kept
        #expect(kept.isNewer && SealedKept(kept.json) == kept)
        story.devices[0].leaveNewerShape()
        #expect(story.devices[0] == known && !known.kept.isNewer && SealedKept(known.kept.json) == known.kept)
    }

    @Test("the position at which an object stopped is kept, and anything but a position is rejected")
    func keptStop() throws {
        for position in [0, 1, 1_000_000] {
            var kept = SealedKept()
            kept.stoppedAfter = position
            #expect(SealedKept(kept.json) == kept && kept.isStopped && !kept.isEmpty)
        }
        for damaged: JSONValue in [-1, 1.5, "1", false, [:]] {
            #expect(SealedKept(["n": damaged]) == nil, "\(damaged)")
        }
    }

    @Test(
        "after a fork, keeping mine starts again with my content; taking the server's reports my content as lost",
        arguments: seeds)
    func repair(seed: UInt64) throws {
        var story = Self.honest(seed)
        let (one, two) = (story.write(0), story.write(1))
        _ = story.devices[0].receive(one, with: story.sealer)
        _ = story.devices[1].receive(two, with: story.sealer)
        _ = story.devices[0].receive(story.write(1), with: story.sealer)
        var mine = story.devices[0]
        #expect(mine.problem?.needsChoice == true)
        let shown = try #require(mine.object)

        var kept = try #require(mine.keepingMine(incarnation: story.random.bytes(16)))
        #expect(kept.object == shown && kept.problem == nil && kept.log.position == 0)
        let snapshot = kept.sealedSnapshot(id: story.random.bytes(16), nonce: [], with: story.sealer)
        // Another device sees the new incarnation, with its unsent edits on top.
        let before = story.devices[2].object
        let events = story.devices[2].adopt(
            story.entity([], snapshots: [0: snapshot]), with: story.sealer)
        #expect(events.first == .recreated && Self.integrity(events) == [])
        #expect(story.devices[2].object == shown && before != shown && story.devices[2].isConsistent)
        try kept.edit(ObjectDiff([(key: "k", operation: .insert(1))]))
        #expect(kept.object?["k"] == 1)

        let reported = try mine.takeServers(
            story.entity(story.operations + [two]), with: story.sealer)
        #expect(mine.problem == nil && mine.object != shown && !mine.hasEdits)
        #expect(
            reported.contains(
                .conflict(.init(path: [], losing: .object(shown), winning: mine.object.map { .object($0) }))))
    }

    @Test("an object that the heads name and the server does not show, or shows otherwise, is found")
    func heads() throws {
        let story = Self.honest(9)
        let log = story.devices[0].log
        let content = try JSONDiff.apply(SealedHeads.edit(of: [:], for: [log]), to: [:])
        #expect(SealedHeads.edit(of: content, for: [log]).isEmpty)
        func found(_ log: SealedLog?, isDeleted: Bool = false) -> [SealedIntegrity] {
            SealedHeads.findings(in: content, log: { $0 == "k" ? log : nil }, isDeleted: { _ in isDeleted }).map(
                \.integrity)
        }
        #expect(found(log) == [])
        #expect(found(nil) == [.removed] && found(nil, isDeleted: true) == [])
        var shorter = SealedLog(
            place: log.place, appKey: log.appKey, incarnation: log.incarnation, object: [:])
        #expect(found(shorter) == [.rolledBack(to: 0)])
        while shorter.position < log.position { _ = shorter.append([1], clear: nil) }
        #expect(found(shorter) == [.forked(at: log.position)])
        let other = SealedLog(
            place: log.place, appKey: "", incarnation: .init(repeating: 0, count: 16), object: [:])
        #expect(found(other) == [])
    }
}

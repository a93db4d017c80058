import Glibc
import Synchronization
import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketReplay
import ThicketSealed

/// Sealed buckets beside open ones, by the same client on the same server: the bytes of a typed character on the wire,
/// its time to other screens, and the cost of opening many objects.
func sealedBuckets() async throws -> [Figure] {
    var figures: [Figure] = []
    // One part alone, for a profile.
    if let objects: Int = number("THICKET_SEALED_WALK") { return try firstScans(objects: objects, bytes: 1_000) }
    if number("THICKET_SEALED_OPENING") != nil { return try await openingMany(objects: 10_000, bytes: 1_000) }
    for kilobytes: Int in [1, 32, 256] { figures += try await characterBytes(objectBytes: kilobytes << 10) }
    figures += try await manyTypists(devices: 8, changesPerSecond: 10, seconds: 10)
    figures += try await openingMany(objects: 10_000, bytes: 1_000)
    figures += try firstScans(objects: 10_000, bytes: 1_000)
    return figures
}

/// The number in a variable of the environment.
private func number(_ variable: String) -> Int? { getenv(variable).flatMap { Int(String(cString: $0)) } }

/// A session on a benchmark's server, and its bucket, open or sealed.
private struct Desk {
    let session: Session
    let bucket: Bucket

    /// - Parameter keys: of a sealed bucket; nil: an open one.
    init(_ server: BenchServer, _ name: String, _ keys: SealedBucketKeys?, file: String? = nil) async throws {
        session = try await Thicket.connect(
            server: server.process.address, app: BenchServer.app, token: server.tokens[0],
            store: file.map { .file("\(server.process.folder)/\($0)") } ?? .memory)
        if let keys {
            bucket = try await session.bucket(name, sealedBy: keys)
        } else {
            bucket = try await session.bucket(name)
        }
    }

    func settle() async throws { try await bucket.waitUntilSynced(timeout: .seconds(600)) }
}

/// Keys of a sealed bucket, or nil for an open one.
private func bucketKeys(_ name: String, isSealed: Bool) throws -> SealedBucketKeys? {
    isSealed ? try Replay.randomKeys(app: BenchServer.app, bucket: name) : nil
}

private func label(_ isSealed: Bool) -> String { isSealed ? "sealed" : "open" }

// MARK: Bytes

/// One user types 200 characters, each as a separate change; bytes of messages, without the frames around them.
private func characterBytes(objectBytes: Int) async throws -> [Figure] {
    var figures: [Figure] = []
    for isSealed: Bool in [false, true] {
        let server = try BenchServer(users: 1)
        let desk: Desk = try await Desk(server, "b", try bucketKeys("b", isSealed: isSealed))
        let text: String = String((0..<objectBytes).map { Character(Unicode.Scalar(97 + UInt8($0 % 23))) })
        try await desk.bucket.set("page", to: ["text": .string(text)])
        try await desk.settle()
        var (sent, received): ([Double], [Double]) = ([], [])
        for number: Int in 0..<200 {
            let before: Traffic = await desk.session.traffic
            try await desk.bucket.editText("page", path: ["text"], at: objectBytes / 2 + number, inserting: "x")
            try await desk.settle()
            let after: Traffic = await desk.session.traffic
            sent.append(Double(after.bytesSent - before.bytesSent))
            received.append(Double(after.bytesReceived - before.bytesReceived))
        }
        await desk.session.close()
        let what = "\(label(isSealed)), object of \(objectBytes >> 10) KiB"
        let goal: Figure.Goal? = isSealed ? .atMost(640) : nil
        figures += [
            Figure(name: "\(what): sent a character", value: quantile(sent.sorted(), 0.5), unit: "B", goal: goal),
            Figure(
                name: "\(what): received a character", value: quantile(received.sorted(), 0.5), unit: "B", goal: goal),
            Figure(
                name: "\(what): sent a character, compactions shared out",
                value: sent.reduce(0, +) / Double(sent.count),
                unit: "B"),
        ]
    }
    return figures
}

// MARK: Many at once

/// Devices that type into one object, each at its own pace; time from a key press to every other screen.
private func manyTypists(devices: Int, changesPerSecond: Int, seconds: Int) async throws -> [Figure] {
    var figures: [Figure] = []
    var last: [Bool: Double] = [:]
    for isSealed: Bool in [false, true] {
        let server = try BenchServer(users: 1)
        let room: TypingRoom = try await TypingRoom(server, devices: devices, isSealed: isSealed)
        let (times, alarms): ([Double], Int) = try await room.type(changesPerSecond, seconds: seconds)
        server.process.kill()
        let sorted: [Double] = times.sorted()
        last[isSealed] = quantile(sorted, 0.99)
        figures += [
            Figure(
                name: "\(label(isSealed)): key to other screen p50, \(devices) devices", value: quantile(sorted, 0.5),
                unit: "ms"),
            Figure(name: "\(label(isSealed)): key to other screen p99", value: quantile(sorted, 0.99), unit: "ms"),
            Figure(
                name: "\(label(isSealed)): keys that reached a screen", value: Double(times.count),
                unit: "", goal: .atLeast(Double(devices * (devices - 1) * changesPerSecond * seconds))),
        ]
        if isSealed {
            figures.append(
                Figure(name: "sealed: reports of what does not fit", value: Double(alarms), unit: "", goal: .atMost(0)))
        }
    }
    figures.append(
        Figure(
            name: "p99 sealed to open", value: (last[true] ?? .nan) / (last[false] ?? .nan), unit: "",
            goal: .atMost(3)))
    return figures
}

/// Devices on one object: each has a counter beside the text, so that a screen shows which keys have arrived.
private final class TypingRoom: Sendable {
    private struct State {
        /// Nanoseconds at which device d pressed its key n.
        var pressed: [[UInt64]]
        /// Keys of device d that screen s shows.
        var shown: [[Int]]
        var times: [Double] = []
        var alarms = 0
    }

    private let desks: [Desk]
    private let state: Mutex<State>

    init(_ server: BenchServer, devices: Int, isSealed: Bool) async throws {
        let keys: SealedBucketKeys? = try bucketKeys("b", isSealed: isSealed)
        var desks: [Desk] = []
        for _ in 0..<devices { desks.append(try await Desk(server, "b", keys)) }
        self.desks = desks
        state = Mutex(
            State(
                pressed: Array(repeating: [], count: devices),
                shown: Array(repeating: Array(repeating: 0, count: devices), count: devices)))
        var pairs: [(key: String, value: JSONValue)] = [("text", .string(""))]
        for device: Int in 0..<devices { pairs.append((Self.counter(device), .number(JSONNumber(0)))) }
        try await desks[0].bucket.set("page", to: JSONObject(pairs))
        try await desks[0].settle()
        for desk in desks { try await Self.wait(desk.bucket) { _ in true } }
    }

    private static func counter(_ device: Int) -> String { "keys\(device)" }

    private static func wait(_ bucket: Bucket, _ isThere: @Sendable (JSONObject) -> Bool) async throws {
        let events: AsyncStream<BucketEvent> = await bucket.changes
        if let object: JSONObject = try await bucket.get("page"), isThere(object) { return }
        for await _: BucketEvent in events {
            if let object: JSONObject = try await bucket.get("page"), isThere(object) { return }
        }
    }

    /// - Returns: milliseconds from each key press to each other screen, and how often something did not fit.
    func type(_ rate: Int, seconds: Int) async throws -> ([Double], Int) {
        let screens: [Task<Void, Never>] = desks.indices.map { (screen: Int) in Task { await self.look(screen) } }
        try await withThrowingTaskGroup { group in
            for device in desks.indices { group.addTask { try await self.press(device, rate, seconds) } }
            try await group.waitForAll()
        }
        let all: Int = rate * seconds
        for desk in desks {
            try await Self.wait(desk.bucket) { object in
                self.desks.indices.allSatisfy { object[Self.counter($0)]?.intValue ?? 0 >= Int64(all) }
            }
            try await desk.settle()
        }
        for desk in desks { await desk.session.close() }
        for screen in screens { await screen.value }
        return state.withLock { ($0.times, $0.alarms) }
    }

    private func press(_ device: Int, _ rate: Int, _ seconds: Int) async throws {
        let start: ContinuousClock.Instant = .now
        for number: Int in 0..<(rate * seconds) {
            // Devices do not press in step.
            let due: Double = (Double(number) + Double(device) / Double(desks.count)) / Double(rate)
            try await Task.sleep(until: start + .seconds(due), clock: .continuous)
            state.withLock { $0.pressed[device].append(nanoseconds()) }
            _ = try await desks[device].bucket.edit("page") { object, _ in
                let length: Int = object?["text"]?.stringValue?.utf16.count ?? 0
                let place: Int = length * (device + 1) / (self.desks.count + 1)
                var delta: TextDelta = TextDelta([.retain(place)])
                delta.insert(Array("k".utf16))
                delta.retain(length - place)
                return ObjectDiff([
                    (
                        key: Self.counter(device),
                        operation: .replace(.number(JSONNumber(Int64(number + 1))))
                    ), (key: "text", operation: .text(delta)),
                ])
            }
        }
    }

    /// Records the keys that a screen shows for the first time.
    private func look(_ screen: Int) async {
        for await event: BucketEvent in await desks[screen].bucket.changes {
            switch event {
            case .changed(let change): record(change.object, on: screen)
            case .integrity: state.withLock { $0.alarms += 1 }
            default: break
            }
        }
    }

    private func record(_ object: JSONObject, on screen: Int) {
        let now: UInt64 = nanoseconds()
        state.withLock { state in
            for device in desks.indices where device != screen {
                let keys: Int = Int(object[Self.counter(device)]?.intValue ?? 0)
                while state.shown[screen][device] < keys {
                    let number: Int = state.shown[screen][device]
                    state.times.append(Double(now - state.pressed[device][number]) / 1e6)
                    state.shown[screen][device] += 1
                }
            }
        }
    }
}

// MARK: A new device

/// A new device with an empty store reads a bucket.
private func openingMany(objects: Int, bytes: Int) async throws -> [Figure] {
    var figures: [Figure] = []
    var seconds: [Bool: Double] = [:]
    for isSealed: Bool in [false, true] {
        let server = try BenchServer(users: 1)
        let keys: SealedBucketKeys? = try bucketKeys("b", isSealed: isSealed)
        let writer: Desk = try await Desk(server, "b", keys)
        for number: Int in 0..<objects {
            let object: JSONObject = [
                "text": .string(String(repeating: "words ", count: bytes / 6)), "n": .number(JSONNumber(Int64(number))),
            ]
            try await writer.bucket.set("key\(number)", to: object)
        }
        try await writer.settle()
        await writer.session.close()
        var (times, work): ([Double], [Double]) = ([], [])
        for round: Int in 0..<3 {
            let (start, before): (UInt64, Double) = (nanoseconds(), ownCPU())
            let reader: Desk = try await Desk(server, "b", keys, file: "reader\(round).db")
            try await reader.settle()
            times.append(Double(nanoseconds() - start) / 1e9)
            work.append(ownCPU() - before)
            let count: Int = try await reader.bucket.keys().count
            guard count == objects else { throw BenchError("the new device has \(count) of \(objects) objects") }
            await reader.session.close()
        }
        seconds[isSealed] = quantile(times.sorted(), 0.5)
        let what = "\(label(isSealed)): \(objects) objects to a new device"
        figures += [
            Figure(name: what, samples: times, unit: "s"),
            Figure(name: "\(what), processor time of the client", samples: work, unit: "s"),
        ]
    }
    figures.append(
        Figure(
            name: "new device: sealed to open", value: (seconds[true] ?? .nan) / (seconds[false] ?? .nan), unit: "",
            goal: .atMost(2)))
    return figures
}

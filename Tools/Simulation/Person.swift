import ThicketClient
import ThicketProtocol

/// The user of one client: types, counts, creates and removes objects, and goes offline.
final class Person {
    private unowned let client: SimulatedClient
    private let world: World
    private var caret = [EntityKey: Int]()
    private var isAsleep = false

    init(_ client: SimulatedClient) {
        self.client = client
        world = client.world
    }

    func begin() {
        guard world.scenario.isDays else { return work(until: .max) }
        live()
        world.after(world.random.between(0, Scenario.day)) { [self] in sleep() }
    }

    // MARK: - Days

    /// A stretch of work, then another activity, again and again.
    private func live() {
        guard !world.isCalm else { return }
        let end = world.now + world.random.between(30, 240) * 1_000_000
        if !isAsleep { work(until: end) }
        world.agenda.at(end + world.random.between(60, 360) * 60_000_000) { [self] in live() }
    }

    /// The night: most people turn their machines off, some leave them on.
    private func sleep() {
        guard !world.isCalm else { return }
        isAsleep = true
        let isShut = world.random.chance(800)
        let now = world.milliseconds
        if isShut { client.turn { (machine) in machine.goOffline(now: now) } }
        world.after(world.random.between(6, 10) * 3_600_000_000) { [self] in
            isAsleep = false
            let now = world.milliseconds
            if isShut { client.turn { (machine) in machine.goOnline(now: now) } }
        }
        world.after(Scenario.day) { [self] in sleep() }
    }

    private func work(until end: Int64) {
        let pace = world.scenario.pace
        world.after(world.random.between(pace / 10, pace * 2)) { [self] in
            guard !world.isCalm, world.now < end else { return }
            act()
            work(until: end)
        }
    }

    private func act() {
        switch world.random.below(100) {
        case 0..<55: burst()
        case 55..<65: count()
        case 65..<68: fill()
        case 68..<71: goOffline()
        default: scribble()
        }
    }

    /// Goes offline on purpose.
    private func goOffline() {
        let now = world.milliseconds
        client.turn { (machine) in machine.goOffline(now: now) }
        world.after(world.random.delay(100_000, 30_000_000)) { [self] in
            let now = world.milliseconds
            client.turn { (machine) in machine.goOnline(now: now) }
        }
    }

    // MARK: - Typing

    private func burst() {
        let isMixed = world.scenario.legacies > 0 && world.random.chance(250)
        let name = isMixed ? "mixed" : "doc\(world.random.below(world.scenario.texts))"
        guard let key = try? EntityKey(name) else { return }
        type(key)
        for number in 0..<world.random.below(4) {
            world.after(Int64(number + 1) * world.random.between(5_000, 80_000)) { [self] in
                if !world.isCalm { type(key) }
            }
        }
    }

    private func type(_ key: EntityKey) {
        guard client.model.hasRoom(key), let marker = client.model.markers.next() else { return }
        let (bucket, now) = (world.names.notes, world.milliseconds)
        guard let text = client.object(bucket, key)?["t"]?.stringValue else {
            // If two clients create one object, the later one wins. So one client creates it, and the others type when
            // they see it.
            guard client.isFirst else { return }
            let isDone = client.turn(on: EntityAddress(bucket: bucket, key: key)) {
                (machine) throws(ClientError) in
                try machine.set(bucket, key, to: ["t": .string(String(Character(marker)))], now: now)
            }
            if isDone { client.model.typed(key, [marker]) }
            return
        }
        let isMixed = Model.isMixed(key)
        if world.scenario.deletes, !isMixed, world.random.chance(250), delete(key, text) { return }
        let scalars = Array(text.unicodeScalars)
        var place = min(caret[key] ?? scalars.count, scalars.count)
        if world.random.chance(200) { place = world.random.below(scalars.count + 1) }
        let before = scalars[..<place].reduce(0) { $0 + UTF16.width($1) }
        let delta = Self.delta(
            length: text.utf16.count, at: before, deleting: 0, inserting: Array(String(Character(marker)).utf16))
        guard edit(bucket, key, delta) else { return }
        caret[key] = place + 1
        client.model.typed(key, [marker])
    }

    private func delete(_ key: EntityKey, _ text: String) -> Bool {
        let scalars = Array(text.unicodeScalars)
        guard scalars.count > 4 else { return false }
        let start = world.random.below(scalars.count)
        let end = min(scalars.count, start + 1 + world.random.below(4))
        let before = scalars[..<start].reduce(0) { $0 + UTF16.width($1) }
        let length = scalars[start..<end].reduce(0) { $0 + UTF16.width($1) }
        let delta = Self.delta(length: text.utf16.count, at: before, deleting: length, inserting: [])
        if edit(world.names.notes, key, delta) { client.model.deleted(key, scalars[start..<end]) }
        return true
    }

    private static func delta(length: Int, at place: Int, deleting: Int, inserting: [UInt16]) -> TextDelta {
        var delta = TextDelta()
        delta.retain(place)
        delta.delete(deleting)
        delta.insert(inserting)
        delta.retain(length - place - deleting)
        return delta
    }

    private func edit(_ bucket: BucketName, _ key: EntityKey, _ delta: TextDelta) -> Bool {
        change(bucket, key, ObjectDiff([(key: "t", operation: .text(delta))]))
    }

    private func change(_ bucket: BucketName, _ key: EntityKey, _ diff: ObjectDiff) -> Bool {
        let now = world.milliseconds
        world.tally.edits += 1
        return client.turn(on: EntityAddress(bucket: bucket, key: key)) { (machine) throws(ClientError) in
            try machine.edit(bucket, key, by: diff, now: now)
        }
    }

    // MARK: - Counting

    private func count() {
        guard let key = try? EntityKey("count") else { return }
        let (bucket, now) = (world.names.notes, world.milliseconds)
        guard client.object(bucket, key) != nil else {
            guard client.isFirst else { return }
            client.turn { (machine) throws(ClientError) in try machine.set(bucket, key, to: ["n": 0], now: now) }
            return
        }
        let step = world.random.between(1, 9)
        let diff = ObjectDiff([(key: "n", operation: .increment(JSONNumber(step)))])
        if change(bucket, key, diff) { client.model.count(step) }
    }

    // MARK: - Near the limit of an object's size

    private func fill() {
        guard let key = try? EntityKey("big") else { return }
        let (bucket, now) = (world.names.notes, world.milliseconds)
        let filling = JSONValue.string(
            client.model.mark + String(repeating: "x", count: 500 + world.random.below(4_000)))
        var object = client.object(bucket, key) ?? JSONObject()
        object["f\(world.random.below(8))"] = filling
        let full = object
        client.turn { (machine) throws(ClientError) in try machine.set(bucket, key, to: full, now: now) }
    }

    /// Makes an object smaller that the server refused.
    func mend() {
        guard let key = try? EntityKey("big") else { return }
        let (bucket, now) = (world.names.notes, world.milliseconds)
        guard client.refusal(bucket, key) != nil else { return }
        let mark = client.model.mark
        client.turn { (machine) throws(ClientError) in
            try machine.set(bucket, key, to: ["f0": .string(mark + "small")], now: now)
        }
    }

    // MARK: - Alarms

    /// For every read-only object, chooses between the local state and the server's.
    func choose() {
        for bucket in world.names.buckets where world.names.keys(bucket, of: client.account) != nil {
            for key in client.blocked(bucket) {
                world.alarm(on: EntityAddress(bucket: bucket, key: key), of: client)
                let keepsMine = world.random.chance(500)
                if let wire = client.wireKey(bucket, key) {
                    chooses(bucket, key, wire, keepsMine: keepsMine)
                }
            }
        }
    }

    private func chooses(_ bucket: BucketName, _ key: EntityKey, _ wire: EntityKey, keepsMine: Bool) {
        let now = world.milliseconds
        if keepsMine {
            world.replaced.insert(wire)
            client.turn { (machine) throws(ClientError) in try machine.keepMine(bucket, key, now: now).1 }
            return
        }
        // The user sees what is given up.
        world.giveUp(client.object(bucket, key))
        client.turn { (machine) throws(ClientError) in
            do throws(ClientError) { return try machine.takeServers(bucket, key, now: now).1 } catch {
                // The server's state does not open: only the other choice is left.
                guard error.code == .integrity else { throw error }
                return []
            }
        }
    }

    // MARK: - In the calm phase

    /// Writes an object whose arrival at every client is known.
    func probe(_ key: EntityKey, _ object: JSONObject) {
        let (bucket, now) = (world.names.scratch, world.milliseconds)
        client.turn { (machine) throws(ClientError) in try machine.set(bucket, key, to: object, now: now) }
    }

    // MARK: - Random edits

    private func scribble() {
        guard let key = try? EntityKey("thing\(world.random.below(5))") else { return }
        let (bucket, now) = (world.names.scratch, world.milliseconds)
        world.tally.edits += 1
        let object = client.object(bucket, key)
        if object != nil, world.random.chance(120) {
            client.turn { (machine) throws(ClientError) in try machine.remove(bucket, key, now: now) }
            return
        }
        let next = client.model.scribbled(object ?? JSONObject(), &world.random)
        client.turn { (machine) throws(ClientError) in try machine.set(bucket, key, to: next, now: now) }
    }
}

import ThicketClient
import ThicketProtocol
import ThicketSealed
import ThicketServer

/// Waits until the system is idle and compares what every client holds.
struct Rest {
    /// Microseconds of virtual time in which all clients must reach the final state.
    private static let patience: Int64 = 1_800_000_000
    /// Microseconds after that in which only heartbeats may be sent.
    private static let silence: Int64 = 200_000_000
    /// Most microseconds that machines need for one change in the calm phase.
    private static let probeSlack: Int64 = 3_000_000
    /// Microseconds between two checks.
    private static let look: Int64 = 1_000_000

    private let world: World

    init(_ world: World) { self.world = world }

    func check() {
        guard settle("after the storm") else { return }
        let before = world.headsWrites
        world.play(until: world.now + Self.silence)
        guard world.problems.isEmpty else { return }
        // Once an hour per device, in every bucket; a change that collides with another device's may need a second one.
        if world.headsWrites - before > 2 * world.people.count * world.names.buckets.count {
            return world.problem("devices go on writing heads: \(world.headsWrites - before) changes in silence")
        }
        if world.lastWork > world.now - Self.silence + 60_000_000 {
            return world.problem("a client goes on sending in the silent phase")
        }
        compare()
        guard world.problems.isEmpty else { return }
        probe()
        guard world.problems.isEmpty else { return }
        do {
            try world.addFreshClients()
        } catch {
            return world.problem("a new client does not start: \(error)")
        }
        if settle("with a new client") { compare() }
    }

    /// - Returns: whether all clients reached the final state.
    private func settle(_ when: String) -> Bool {
        let end = world.now + Self.patience
        // Half of the clients do not follow events: their alarms show only when the objects are checked.
        if world.scenario.sealing != .none { world.hasAlarms = true }
        while world.now < end {
            world.play(until: world.now + Self.look)
            guard world.problems.isEmpty else { return false }
            BlobRest(world).lookForLost()
            guard world.problems.isEmpty else { return false }
            for client in world.people { client.person.mend() }
            for device in world.trees.devices { device.person.mend() }
            if world.hasAlarms { for client in world.people { client.person.choose() } }
            let isDone =
                world.server.isQuiet && world.people.allSatisfy(\.isSynced) && world.legacies.allSatisfy(\.isSynced)
                && world.trees.devices.allSatisfy(\.isAtRest)
            if isDone { return true }
        }
        let late =
            world.people.filter { !$0.isSynced }.map { "client \($0.number) (\($0.machine.status))" }
            + world.legacies.filter { !$0.isSynced }.map { "legacy \($0.number)" }
            + world.trees.devices.filter { !$0.isAtRest }.map(\.summary)
        world.problem("\(when): not at rest after \(Self.patience / 60_000_000) minutes: \(late)")
        return false
    }

    // MARK: - Liveness

    /// In the calm phase a change is acknowledged and delivered to all clients within the time that its messages need,
    /// plus a margin.
    private func probe() {
        guard let key = try? EntityKey("probe") else { return }
        let bucket = world.names.scratch
        for client in world.people {
            let object: JSONObject = ["n": .number(JSONNumber(Int64(client.number)))]
            client.person.probe(key, object)
            let end = world.now + Self.probeSlack + 4 * world.scenario.latency
            var isDone = false
            while !isDone, world.now < end, world.problems.isEmpty {
                world.play(until: world.now + 20_000)
                isDone = world.people.allSatisfy { other in
                    other.account.number != client.account.number
                        || (other.object(bucket, key) == object && other.machine.isSynced(bucket))
                }
            }
            if !isDone { return world.problem("a change of client \(client.number) in calm weather is not everywhere") }
        }
    }

    // MARK: - Comparing

    private func compare() {
        guard let reader = world.server.auditor else { return world.problem("the server is down") }
        do {
            for account in world.names.accounts {
                for bucket in world.names.buckets { try compare(bucket, of: account, reader) }
            }
        } catch {
            world.problem("the store cannot be read: \(error)")
        }
        for account in world.names.accounts { compareModel(of: account) }
        TreeRest(world).compare()
        BlobRest(world).compare()
        world.server.audit()
    }

    private func compare(
        _ bucket: BucketName, of account: Account, _ reader: any StoreReader
    ) throws(StoreError) {
        let id = world.names.id(bucket, of: account)
        let mirror = world.ledger.mirror(id)
        var objects = [EntityKey: (version: Version, body: [UInt8])]()
        if let record = try reader.bucket(id) {
            for key in try reader.liveKeys(in: record.row, after: nil, limit: 100_000) {
                guard let head = try reader.head(of: key, in: record.row), let body = head.body
                else { return world.problem("the store has no body of \(key.text)") }
                objects[key] = (head.record.version, body)
            }
        }
        for (key, entity) in mirror.entities.sorted(by: { $0.key < $1.key }) {
            let body = entity.object.map { JSONValue.object($0).serialized() }
            if objects[key]?.body != body { world.problem("the store's \(key.text) is not what its log makes") }
        }
        let shown =
            mirror.isSealed ? clear(mirror, objects, bucket, of: account) : objects
        for client in world.people where client.account.number == account.number {
            compare(client, bucket, shown)
        }
        for legacy in world.legacies where legacy.account.number == account.number {
            legacy.compare(bucket, objects)
        }
    }

    /// The objects of a sealed bucket as apps must see them.
    private func clear(
        _ mirror: Ledger.Mirror, _ objects: [EntityKey: (version: Version, body: [UInt8])], _ bucket: BucketName,
        of account: Account
    ) -> [EntityKey: (version: Version, body: [UInt8])] {
        guard let keys = world.names.keys(bucket, of: account) else { return [:] }
        var clear = [EntityKey: (version: Version, body: [UInt8])]()
        for (key, object) in mirror.objects {
            guard let wire = try? EntityKey(keys.serverKey(of: key.text)),
                let version = objects[wire]?.version
            else {
                world.problem("the sealed object \(key.text) is not stored under its name")
                continue
            }
            clear[key] = (version, JSONValue.object(object).serialized())
        }
        return clear
    }

    private func compare(
        _ client: SimulatedClient, _ bucket: BucketName, _ objects: [EntityKey: (version: Version, body: [UInt8])]
    ) {
        let who = "client \(client.number)"
        let keys: [EntityKey]
        do {
            keys = try client.machine.keys(bucket, after: nil, limit: 100_000)
        } catch {
            return world.problem("\(who): its store cannot be read: \(error)")
        }
        if keys != objects.keys.sorted() {
            return world.problem("\(who) has \(keys.map(\.text)), the server \(objects.keys.sorted().map(\.text))")
        }
        let (all, refused) = client.machine.unconfirmed(bucket)
        // Its hourly write may happen exactly at the time of the comparison.
        let edited = all - (client.machine.isWritingHeads(bucket) ? 1 : 0)
        if edited + refused > 0 { world.problem("\(who) still has \(edited) unconfirmed objects in \(bucket.text)") }
        for key in keys {
            guard let (version, body) = objects[key] else { continue }
            let ghost = client.ghost(bucket, key)
            let local = client.object(bucket, key).map { JSONValue.object($0).serialized() }
            if ghost?.object.map({ JSONValue.object($0).serialized() }) != body {
                let mine = ghost?.object.map { JSONValue.object($0).serializedText } ?? "nothing"
                world.problem("\(who): ghost of \(key.text): \(mine), server: \(String(decoding: body, as: UTF8.self))")
            }
            if ghost?.version != version {
                world.problem("\(who): ghost of \(key.text) at \(ghost?.version ?? 0), the server at \(version)")
            }
            if local != body {
                let mine = local.map { String(decoding: $0, as: UTF8.self) } ?? "nothing"
                world.problem("\(who): \(key.text): \(mine), server: \(String(decoding: body, as: UTF8.self))")
            }
            if client.display(bucket, key) != client.object(bucket, key) {
                world.problem("\(who): an editor that follows the events shows another \(key.text)")
            }
        }
    }

    private func compareModel(of account: Account) {
        let mirror = world.ledger.mirror(world.names.id(world.names.notes, of: account))
        let model = world.models[account.number]
        let objects = mirror.objects
        for (key, typed) in model.texts.sorted(by: { $0.key < $1.key }) {
            if typed.mustStand, objects[key] == nil {
                world.problem("\(key.text): a client had it when the server was restored, and it is gone")
            }
            let text = objects[key]?["t"]?.stringValue ?? ""
            if let flaw = typed.flaw(
                in: text, forgivesReturns: world.scenario.retention != nil, givenUp: world.givenUp)
            {
                world.problem("\(key.text): \(flaw)")
            }
        }
        let sum = objects.first { $0.key.text == "count" }?.value["n"]?.intValue ?? 0
        if let counted = model.sum, sum != counted {
            world.problem("counted \(counted), the server holds \(sum)")
        }
    }
}

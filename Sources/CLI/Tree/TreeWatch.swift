import ThicketClient
import ThicketCommandLine
import ThicketKeyLog
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// `thicket tree watch`: prints what other devices change, until Ctrl-C.
enum TreeWatch {
    private enum Happening: Sendable {
        case event(TreeEvent)
        case status(SyncStatus)
        case people(PeopleEvent)
        case interrupted
    }

    static func run(_ call: Call) async throws(Failure) {
        let argument = try TreeArgument(call.argument("PATH"), standard: TreePath(.home))
        let open = try await OpenTree.open(call, isOnline: true, place: .watch)
        let (events, isCaughtUp) = await open.tree.observe()
        let statuses = await open.tree.status
        let people = try? await open.client.people()
        let alarms = await people?.events
        let contacts = (try? await people?.contacts())?.map(\.contact) ?? []
        do throws(Failure) { try await open.ready() } catch {
            await open.close()
            throw error
        }
        let (stream, continuation) = AsyncStream.makeStream(
            of: Happening.self, bufferingPolicy: .bufferingOldest(StreamLimits.eventsMax))
        let interrupts = Interrupts.stream()
        Terminal.writeError(
            "watching \(TreeText.named(argument.path)) at \(open.account.profile.server); Ctrl-C ends it\n")
        var view = TreeWatchView(
            path: argument.path, isJSON: call.flag("json"), contacts: contacts, isLive: isCaughtUp)
        await withTaskGroup { group in
            group.addTask { for await event in events { continuation.yield(.event(event)) } }
            group.addTask { for await status in statuses { continuation.yield(.status(status)) } }
            group.addTask {
                guard let alarms else { return }
                for await event in alarms { continuation.yield(.people(event)) }
            }
            group.addTask {
                for await _ in interrupts {}
                continuation.yield(.interrupted)
            }
            for await happening in stream {
                let isOver =
                    switch happening {
                    case .interrupted: true
                    case .status(let status): view.show(status)
                    case .event(let event): view.show(event)
                    case .people(let event): view.show(event)
                    }
                if isOver { break }
            }
            group.cancelAll()
            continuation.finish()
            await open.close()
            Interrupts.release()
        }
        if let problem = view.problem { throw problem }
    }
}

/// Decides what `thicket tree watch` prints.
struct TreeWatchView {
    /// Only what is at or below this path is printed.
    let path: TreePath
    let isJSON: Bool
    /// Names of other people.
    private let contacts: [Contact]
    /// What was changed before the start is not printed.
    private var isLive: Bool
    private var lastStatus = ""
    /// Alarms that were printed.
    private var alarms = [KeyLogAlarm]()
    private(set) var problem: Failure?

    /// - Parameter isLive: false: `caughtUp` will come.
    init(path: TreePath, isJSON: Bool, contacts: [Contact] = [], isLive: Bool) {
        (self.path, self.isJSON, self.contacts, self.isLive) = (path, isJSON, contacts, isLive)
    }

    /// Alarms of the key log at once, whatever path is watched, and new keys of others.
    ///
    /// - Returns: whether the command ends, because the output has no reader.
    mutating func show(_ event: PeopleEvent) -> Bool {
        switch event {
        case .alarm(let alarm):
            // Each look-up finds it again.
            guard !alarms.contains(alarm), alarms.count < PeopleLimits.alarmsMax else { return false }
            alarms.append(alarm)
            let text = "ALARM: \(Screen.safe(alarm.text)). 'thicket keylog' says more"
            let object: JSONObject = [
                "event": "alarm", "code": .string(alarm.code), "detail": .string(alarm.text),
            ]
            return write("! \(text)", object, nil)
        case .rotated(_, let keys):
            guard !RotationReports.isHandle(keys.user) else { return false }
            let line = RotationReports.line(keys.user, contacts)
            return write("* \(line)", ["event": "new-keys", "user": .string(keys.user)], nil)
        case .appended, .nameHeld, .logKey: return false
        }
    }

    /// - Returns: whether the command ends.
    mutating func show(_ status: SyncStatus) -> Bool {
        switch status {
        case .offline(.unauthorized(let reason)):
            problem = Failure("the login has ended (\(reason))", .unauthorized)
            return true
        case .offline(.closed): return true
        case .offline(.unreachable(let reason)), .offline(.untrusted(let reason)), .offline(.storeFailed(let reason)):
            return change("offline", reason)
        case .upToDate: return change("connected", nil)
        case .connecting, .indexing, .syncing, .offline: return false
        }
    }

    private mutating func change(_ word: String, _ reason: String?) -> Bool {
        guard !same(word, lastStatus) else { return false }
        let isFirst = lastStatus.isEmpty
        lastStatus = word
        if isJSON {
            var object: JSONObject = ["status": .string(word)]
            if let reason { object["reason"] = .string(reason) }
            return !Terminal.write(JSONValue.object(object).serializedText + "\n")
        }
        if !isFirst { Terminal.writeError(word + (reason.map { ": \($0)" } ?? "") + "\n") }
        return false
    }

    /// - Returns: whether the command ends, because the output has no reader.
    mutating func show(_ event: TreeEvent) -> Bool {
        if case .caughtUp = event { isLive = true }
        guard isLive else { return false }
        return switch event {
        case .discovered(let node, let path): line("+", "new", node, path)
        case .modified(let node, let change, let path): line("~", "modified", node, path, change)
        case .moved(let node, let from, let to): line(">", "moved", node, to, from: from)
        case .deleted(let node, let path): line("-", "removed", node, path)
        case .integrity(let fault): write("! \(fault.node.text): \(fault.detail)", ["event": "integrity"], fault.node)
        case .gap(let missed): write("! \(missed) events were missed", ["event": "gap"], nil)
        case .conflict, .pushed, .delivered, .operationFailed, .caughtUp: false
        }
    }

    private func line(
        _ sign: String, _ word: String, _ node: Node, _ place: TreePath, _ change: NodeChange? = nil,
        from: TreePath? = nil
    ) -> Bool {
        guard isBelow(place) || from.map(isBelow) == true else { return false }
        var object: JSONObject = ["event": .string(word), "path": .string(place.description)]
        if let from { object["from"] = .string(from.description) }
        if let change {
            let names: [(NodeChange, String)] = [
                (.data, "content"), (.tags, "pairs"), (.burnTime, "burn-time"), (.origin, "origin"),
            ]
            object["changed"] = .array(names.filter { change.contains($0.0) }.map { .string($0.1) })
        }
        object["version"] = .number(JSONNumber(node.version))
        let origin = from.map { TreeText.shown($0) + " -> " } ?? ""
        return write("\(sign) \(origin)\(TreeText.shown(place))", object, node.id)
    }

    private func isBelow(_ place: TreePath) -> Bool {
        place.depth >= path.depth
            && TreePath(place.trunk, names: Array(place.names.prefix(path.depth))).isSame(as: path)
    }

    private func write(_ text: String, _ object: JSONObject, _ node: NodeID?) -> Bool {
        guard isJSON else { return !Terminal.write(text + "\n") }
        var object = object
        if let node { object["id"] = .string(node.text) }
        return !Terminal.write(JSONValue.object(object).serializedText + "\n")
    }
}

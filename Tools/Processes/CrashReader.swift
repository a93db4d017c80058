import ThicketProtocol

/// Follows one bucket's log from its beginning, once, and knows by it what the bucket must hold.
final class CrashReader {
    private let app: String
    private let token: String
    private var cv: String?
    /// Every ccid of the log.
    private(set) var seen: Set<String> = []
    /// Retention has cut what was not read yet: `seen` has a gap.
    private(set) var hasGap: Bool = false
    /// What must not be.
    private(set) var faults: [String] = []
    private var objects: [String: JSONObject] = [:]
    private var versions: [String: Version] = [:]

    let bucket: String
    private let mayHaveGaps: Bool

    /// - Parameter mayHaveGaps: retention cuts the log faster than it is read.
    init(app: String, bucket: String, token: String, mayHaveGaps: Bool) {
        (self.app, self.bucket, self.token, self.mayHaveGaps) = (app, bucket, token, mayHaveGaps)
    }

    /// Reads the log from where it stopped last time to its end. Nobody may be writing.
    func follow(port: UInt16) throws(ProcessError) {
        let socket: WireSocket = try connect(port)
        let head: String = try page(socket, "0:i::::1").current.text
        if cv == nil {
            // A bucket that was never followed: its beginning is the position of the empty bucket, which only the first
            // index gave.
            cv = head
            return
        }
        guard let from: String = cv, !from.utf8.elementsEqual(head.utf8) else { return }
        socket.send("0:cv:\(from)")
        while cv?.utf8.elementsEqual(head.utf8) != true {
            let events: [ChangeEvent]? = try socket.next { (message: ServerMessage) -> [ChangeEvent]?? in
                switch message {
                case .channel(0, .changes(let events)): .some(events)
                case .channel(0, .changeVersionUnknown): .some(nil)
                default: nil
                }
            }
            guard let events: [ChangeEvent] else {
                guard mayHaveGaps else { throw ProcessError("\(bucket): the server does not know its own cv") }
                return try beginAnew(socket)
            }
            for event: ChangeEvent in events {
                guard case .applied(let change) = event else { continue }
                receive(change)
            }
        }
    }

    /// As every client does whose cv is unknown: the index is the new beginning.
    private func beginAnew(_ socket: WireSocket) throws(ProcessError) {
        hasGap = true
        objects.removeAll()
        var mark: String = ""
        var listed: [IndexPage.Entry] = []
        while true {
            let page: IndexPage = try page(socket, "0:i:1:\(mark)::500")
            cv = page.current.text
            listed += page.entries
            guard let next: String = page.mark else { break }
            mark = next
        }
        for entry: IndexPage.Entry in listed {
            let key: String = entry.key.text
            if let before: Version = versions[key], entry.version < before {
                faults.append("\(bucket)/\(key): version \(entry.version) in the index after \(before)")
            }
            versions[key] = entry.version
            objects[key] = entry.data?.object
        }
    }

    /// Asks the server for changes that were not seen: one that it knows is refused as a duplicate, any other because
    /// there is no such object.
    /// - Returns: those that the server does not know.
    func unknown(_ ccids: Set<String>, port: UInt16) throws(ProcessError) -> Set<String> {
        let socket: WireSocket = try connect(port)
        var unknown: Set<String> = []
        for ccid: String in ccids.sorted() {
            socket.send("0:c:{\"clientid\":\"reader\",\"id\":\"\(Self.nobody)\",\"o\":\"-\",\"ccid\":\"\(ccid)\"}")
            let code: Int = try socket.next { (message: ServerMessage) -> Int? in
                guard case .channel(0, .changes(let events)) = message else { return nil }
                for case .refused(let refusal) in events { return refusal.error }
                return nil
            }
            if code == ErrorCode.duplicateChange.rawValue { seen.insert(ccid) } else { unknown.insert(ccid) }
        }
        return unknown
    }

    /// A key that no object has, of the form that sealed buckets take, too.
    private static let nobody: String = String(repeating: "a", count: 32)

    /// Compares what the log says with what the index gives, object by object.
    func compareWithIndex(port: UInt16) throws(ProcessError) {
        let socket: WireSocket = try connect(port)
        var left: Set<String> = Set(objects.keys)
        var mark: String = ""
        while true {
            let page: IndexPage = try page(socket, "0:i:1:\(mark)::500")
            for entry: IndexPage.Entry in page.entries {
                let key: String = entry.key.text
                left.remove(key)
                if versions[key] != entry.version {
                    faults.append("\(bucket)/\(key): version \(entry.version), the log says \(versions[key] as Any)")
                }
                if entry.data?.object != objects[key] { faults.append("\(bucket)/\(key): not what the log says") }
            }
            guard let next: String = page.mark else { break }
            mark = next
        }
        for key: String in left.sorted() { faults.append("\(bucket)/\(key): in the log and not in the index") }
    }

    private func receive(_ change: AppliedChange) {
        cv = change.cv.text
        for ccid: String in change.ccids where !seen.insert(ccid).inserted {
            faults.append("\(bucket): \(ccid) was applied twice")
        }
        let key: String = change.key.text
        let before: Version = versions[key] ?? 0
        if change.ev <= before { faults.append("\(bucket)/\(key): version \(change.ev) after \(before)") }
        versions[key] = change.ev
        switch change.operation {
        case .remove: objects[key] = nil
        case .modify:
            do {
                let diff: ObjectDiff = try ObjectDiff(change.diff?.value ?? .null)
                objects[key] = try JSONDiff.apply(diff, to: objects[key] ?? JSONObject())
            } catch {
                faults.append("\(bucket)/\(key): version \(change.ev) does not fit the one before: \(error)")
            }
        }
    }

    private func connect(_ port: UInt16) throws(ProcessError) -> WireSocket {
        let socket: WireSocket = try WireSocket(port: port, app: app)
        try socket.open(bucket, app: app, token: token, clientID: "reader")
        return socket
    }

    private func page(_ socket: WireSocket, _ request: String) throws(ProcessError) -> IndexPage {
        socket.send(request)
        return try socket.next { (message: ServerMessage) -> IndexPage? in
            if case .channel(0, .index(let page)) = message { page } else { nil }
        }
    }
}

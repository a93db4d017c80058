import ThicketProtocol

/// Follows one bucket's log from its beginning, once, and derives the contents that the bucket must have.
final class CrashReader {
    private let app: String
    private let token: String
    private var cv: String?
    /// Every ccid of the log.
    private(set) var seen = Set<String>()
    /// Retention has cut unread changes: `seen` has a gap.
    private(set) var hasGap = false
    /// Violations.
    private(set) var faults = [String]()
    private var objects = [String: JSONObject]()
    private var versions = [String: Version]()

    let bucket: String
    private let mayHaveGaps: Bool

    /// - Parameter mayHaveGaps: whether retention may cut the log faster than it is read.
    init(app: String, bucket: String, token: String, mayHaveGaps: Bool) {
        (self.app, self.bucket, self.token, self.mayHaveGaps) = (app, bucket, token, mayHaveGaps)
    }

    /// Reads the log from its last position to its end. No writer may be active.
    func follow(port: UInt16) throws(ProcessError) {
        let socket = try connect(port)
        let head = try page(socket, "0:i::::1").current.text
        if cv == nil {
            // The bucket was never followed: its beginning is the position of the empty bucket, which only the first
            // index gave.
            cv = head
            return
        }
        guard let from = cv, !from.utf8.elementsEqual(head.utf8) else { return }
        socket.send("0:cv:\(from)")
        while cv?.utf8.elementsEqual(head.utf8) != true {
            let events = try socket.next { (message: ServerMessage) -> [ChangeEvent]?? in
                switch message {
                case .channel(0, .changes(let events)): .some(events)
                case .channel(0, .changeVersionUnknown): .some(nil)
                default: nil
                }
            }
            guard let events else {
                guard mayHaveGaps else { throw ProcessError("\(bucket): the server does not know its own cv") }
                return try rescan(socket)
            }
            for event in events {
                guard case .applied(let change) = event else { continue }
                receive(change)
            }
        }
    }

    /// As a client with an unknown cv does: the index is the new beginning.
    private func rescan(_ socket: WireSocket) throws(ProcessError) {
        hasGap = true
        objects.removeAll()
        var mark = ""
        var listed = [IndexPage.Entry]()
        while true {
            let page = try page(socket, "0:i:1:\(mark)::500")
            cv = page.current.text
            listed += page.entries
            guard let next = page.mark else { break }
            mark = next
        }
        for entry in listed {
            let key = entry.key.text
            if let before = versions[key], entry.version < before {
                faults.append("\(bucket)/\(key): version \(entry.version) in the index after \(before)")
            }
            versions[key] = entry.version
            objects[key] = entry.data?.object
        }
    }

    /// Asks the server about unseen changes: a known one is refused as a duplicate, any other because its object does
    /// not exist.
    /// - Returns: the changes that the server does not know.
    func unknown(_ ccids: Set<String>, port: UInt16) throws(ProcessError) -> Set<String> {
        let socket = try connect(port)
        var unknown = Set<String>()
        for ccid in ccids.sorted() {
            socket.send("0:c:{\"clientid\":\"reader\",\"id\":\"\(Self.nobody)\",\"o\":\"-\",\"ccid\":\"\(ccid)\"}")
            let code = try socket.next { (message: ServerMessage) -> Int? in
                guard case .channel(0, .changes(let events)) = message else { return nil }
                for case .refused(let refusal) in events { return refusal.error }
                return nil
            }
            if code == ErrorCode.duplicateChange.rawValue { seen.insert(ccid) } else { unknown.insert(ccid) }
        }
        return unknown
    }

    /// A key that no object has, of a form that sealed buckets accept, too.
    private static let nobody = String(repeating: "a", count: 32)

    /// Compares the objects of the log with those of the index, one by one.
    func compareWithIndex(port: UInt16) throws(ProcessError) {
        let socket = try connect(port)
        var left: Set<String> = Set(objects.keys)
        var mark = ""
        while true {
            let page = try page(socket, "0:i:1:\(mark)::500")
            for entry in page.entries {
                let key = entry.key.text
                left.remove(key)
                if versions[key] != entry.version {
                    faults.append("\(bucket)/\(key): version \(entry.version), the log says \(versions[key] as Any)")
                }
                if entry.data?.object != objects[key] { faults.append("\(bucket)/\(key): not what the log says") }
            }
            guard let next = page.mark else { break }
            mark = next
        }
        for key in left.sorted() { faults.append("\(bucket)/\(key): in the log and not in the index") }
    }

    private func receive(_ change: AppliedChange) {
        cv = change.cv.text
        for ccid in change.ccids where !seen.insert(ccid).inserted {
            faults.append("\(bucket): \(ccid) was applied twice")
        }
        let key = change.key.text
        let before = versions[key] ?? 0
        if change.ev <= before { faults.append("\(bucket)/\(key): version \(change.ev) after \(before)") }
        versions[key] = change.ev
        switch change.operation {
        case .remove: objects[key] = nil
        case .modify:
            do {
                let diff = try ObjectDiff(change.diff?.value ?? .null)
                objects[key] = try JSONDiff.apply(diff, to: objects[key] ?? JSONObject())
            } catch {
                faults.append("\(bucket)/\(key): version \(change.ev) does not fit the one before: \(error)")
            }
        }
    }

    private func connect(_ port: UInt16) throws(ProcessError) -> WireSocket {
        let socket = try WireSocket(port: port, app: app)
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

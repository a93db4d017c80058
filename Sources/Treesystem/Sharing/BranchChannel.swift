import ThicketClient
import ThicketProtocol
import ThicketTreeShape

/// The channel of a branch of another account, as far as it differs from that of an own tree (decision 0067).
enum BranchChannel {
    /// The `init` of a branch: its name stands where that of a bucket does.
    ///
    /// - Parameter command: the position in the owner's log; nil before the first reading.
    static func initialize(_ branch: BranchName, _ link: SyncLink, command: String?) -> [UInt8] {
        let options = link.options
        var body: JSONObject = [
            "clientid": .string(link.clientID.text), "api": "1.1", "token": .string(options.token),
            "app_id": .string(options.app.text), "name": .string(branch.text), "library": .string(options.library),
            "version": .string(options.version),
        ]
        if let device = options.deviceID { body["device_id"] = .string(device) }
        if let command { body["cmd"] = .string(command) }
        return Messages.onChannel(0, "init:", body.serialized())
    }

    /// The places whose lists a new device reads first. The list of `home` of a branch is its root.
    static func trunks(_ branch: BranchName?) -> [Trunk] { branch == nil ? Trunk.allCases : [.home] }

    /// The server answers `auth` with 401 to a token that has ended, and to an account that may not read the branch.
    /// Only a token that is new and refused as well proves the latter, where the server does not say so.
    ///
    /// - Returns: whether the branch is not served to this account.
    static func isRevoked(_ message: String, _ machine: inout TreeMachine) -> Bool {
        guard machine.options.branch != nil else { return false }
        machine.skeleton.branches.refusals += 1
        let isSaid = message.utf8.elementsEqual(ShareDenial.noRead.rawValue.utf8)
        guard isSaid || machine.skeleton.branches.refusals > 1 || !machine.link.options.renewsToken else {
            return false
        }
        machine.skeleton.actions.append(.sharing(.revoked))
        return true
    }

    static let revoked = "the branch is not shared with this account"

    /// The log has brought a node that this device did not have. One that came into the branch may have others below it
    /// since long, and is no new one.
    static func entered(_ id: NodeID, _ version: Version, _ machine: inout TreeMachine) throws(TreeError) {
        guard machine.options.branch == nil || version == 1 else {
            return machine.lists.add(.node(id), levels: TreeLimits.depthMax)
        }
        try machine.store.setListed(.node(id), true)
    }

    /// A node that leaves the audience stands for everything below it.
    static func removed(_ id: NodeID, _ machine: inout TreeMachine) throws(TreeError) {
        guard machine.options.branch != nil else { return }
        // Where the server has them: this device may have moved one there that is elsewhere for all others.
        var gone: Set<NodeID> = [id]
        var rows = [NodeRow]()
        for below in try machine.store.branch(of: id).dropFirst() {
            // A record that waits for keys may have moved it.
            guard let row = try machine.store.row(below),
                let text = try machine.store.quarantined(below) ?? row.record,
                case .node(let parent)? = (try? NodeRecord(parsing: text, from: .server))?.parent,
                gone.contains(parent)
            else { continue }
            gone.insert(below)
            rows.append(row)
        }
        for row in rows.reversed() { try machine.skeleton.removed(row.id, at: row.version) }
    }
}

import ThicketProtocol

@testable import ThicketTree
@testable import ThicketTreeShape
@testable import ThicketTreesystem

/// An owner with two devices, and two members.
final class SharedWorld {
    let world: TreeWorld
    let owner: WorldDevice
    let root: NodeID

    init(_ seed: UInt64, _ letters: [String: String] = ["user-2": "rw", "user-3": "r"]) throws {
        world = try TreeWorld(seed: seed, owners: ["user-1", "user-1", "user-2", "user-3"])
        owner = world.devices[0]
        root = try owner.create("album", in: world)
        try owner.create("album/photo", "one", in: world)
        try owner.create("album/folder", in: world)
        try owner.create("album/folder/leaf", "two", in: world)
        try owner.create("private", in: world)
        try owner.create("private/note", "secret", in: world)
        try world.settleDown()
        try change(letters)
        try world.settleDown()
    }

    func change(_ letters: [String: String]) throws {
        var members = [UserID: SharePermissions]()
        for (name, text) in letters { members[try UserID(name)] = SharePermissions(text: text) ?? [] }
        let (change, root) = (ShareChange(members), root)
        _ = try owner.local(world) { machine throws(TreeError) in
            try ShareChanges.add(change, to: root, &machine.skeleton)
        }
    }

    func join(_ user: String) throws -> WorldDevice {
        let device = try world.join("user-1", root, as: user)
        try world.settleDown()
        return device
    }

    /// The owner's paths in the branch.
    func branchPaths() throws -> [String] {
        try owner.paths().filter { $0.hasPrefix("home/album") }
    }
}

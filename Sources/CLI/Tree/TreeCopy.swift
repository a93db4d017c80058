import ThicketClient
import ThicketCommandLine
import ThicketTreesystem

/// The copy of the tree that a profile has, as far as it can be read without the account's keys.
enum TreeCopy {
    /// How the copy is called in messages, beside names of buckets.
    static let name = "the tree"

    /// Changes that the server has not confirmed.
    struct Waiting: Sendable {
        let count: Int
        /// Those of them that wait for the user.
        let held: Int
    }

    /// - Returns: nil when the profile has no copy.
    /// - Throws: `storeInUse` while another command uses it.
    static func waiting(_ account: Account) throws(Failure) -> Waiting? {
        guard let folder = account.folder, let keyFile = account.keyFile else { return nil }
        // The copy of the tree, and those of branches of other accounts beside it.
        let files = Files.names(in: "\(folder)/tree").filter { name in
            name.hasPrefix("tree.db.tree") && ![".lock", "-wal", "-shm"].contains { name.hasSuffix($0) }
                && !Files.isFolder("\(folder)/tree/\(name)")
        }
        guard !files.isEmpty else { return nil }
        var (count, held) = (0, 0)
        for name in files.sorted() {
            let each = try waiting(at: "\(folder)/tree/\(name)", keyFile)
            (count, held) = (count + each.count, held + each.held)
        }
        return Waiting(count: count, held: held)
    }

    private static func waiting(at path: String, _ keyFile: StoreKeyFile) throws(Failure) -> Waiting {
        let file: StoreFile
        do throws(ClientError) {
            file = try StoreFile(path: path, key: try keyFile.key(), durability: .program)
        } catch {
            guard error.code == .storeInUse else { throw Failure("the local copy of the tree cannot be used", error) }
            throw Failure("another 'thicket' command uses the local copy of the tree", .storeInUse)
        }
        do throws(TreeError) {
            let operations = try TreeStore(file).operations()
            let held = operations.count {
                switch $0.state {
                case .held, .failed: true
                case .waiting, .sending: false
                }
            }
            return Waiting(count: operations.count, held: held)
        } catch { throw Failure("the local copy of the tree cannot be read", tree: error) }
    }
}

import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketTree

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// What keeps and transfers the contents of a tree.
struct TreeContents: Sendable {
    let disk: DiskStore
    let uploader: Uploader
    let downloads: DownloadManager
    /// A folder that is removed when the tree is closed; nil for a folder that stays.
    let temporary: TemporaryContents?

    /// Opens the store of a session's tree, and its folder.
    ///
    /// - Throws: `store`, `limit`.
    ///
    /// - Parameter branch: the branch of another account; nil: the own tree.
    static func open(
        _ session: ClientSession, _ branch: BranchName? = nil
    ) throws(TreeError) -> (store: TreeStore, contents: TreeContents) {
        let place = session.sessionPlace
        let store: TreeStore
        let end = branch.map { "-" + $0.part } ?? ""
        let folder: (path: String, key: StoreKey)?
        do throws(ClientError) {
            let file = try place.store.open(part: "tree" + end, place.options.durability)
            do throws(TreeError) {
                let durability = place.options.durability
                store = if let file { try TreeStore(file, durability: durability) } else { try TreeStore() }
            } catch { throw ClientError(.store, error.detail) }
            folder = try place.store.folder(part: "files" + end)
        } catch { throw TreeError(error) }
        return (store, try TreeContents(folder, HTTPBlobTransport(session, branch)))
    }

    /// Contents that are kept for one call.
    ///
    /// - Throws: `store`, `limit`.
    init(temporary transport: any BlobTransport) throws(TreeError) { try self.init(nil, transport) }

    private init(
        _ folder: (path: String, key: StoreKey)?, _ transport: any BlobTransport
    ) throws(TreeError) {
        do throws(ContentError) {
            if let folder {
                disk = try DiskStore(folder: folder.path, key: folder.key)
                temporary = nil
            } else {
                let path = "\(Self.temporaryPath)/thicket-\(RandomBytes.hex(16))"
                disk = try DiskStore(folder: path, key: .random())
                temporary = TemporaryContents(path)
            }
            uploader = try Uploader(transport)
            downloads = try DownloadManager(disk: disk, transport: transport)
        } catch { throw TreeError(error) }
    }

    /// Where the folders of trees in memory are made.
    private static let temporaryPath = "/tmp"

    /// Closes the folder, and removes a temporary one.
    func close() async {
        await disk.close()
        temporary?.remove()
    }
}

/// A folder that is removed with its files, at the latest with the value.
final class TemporaryContents: Sendable {
    let path: String

    init(_ path: String) { self.path = path }
    deinit { remove() }

    func remove() {
        let files = SystemFiles()
        for name in (try? files.names(in: path)) ?? [] { try? files.remove("\(path)/\(name)") }
        rmdir(path)
    }
}

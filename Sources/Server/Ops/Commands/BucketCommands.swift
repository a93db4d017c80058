import ThicketCommandLine
import ThicketProtocol

/// `thicketd bucket mode`.
enum BucketCommands {
    static func mode(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let app: AppID = try AdminCommands.identifier(call.argument("APP"))
        let name: BucketName = try AdminCommands.identifier(call.argument("BUCKET"))
        let folder = try AdminCommands.folderWithData(config)
        let admin = try AdminCommands.admin(folder)
        guard let word = call.argument("MODE") else {
            let modes = try doing(folder) { () throws(StoreAdminError) in
                try admin.modes(of: name, in: app)
            }
            Terminal.write(text(modes))
            return
        }
        guard let mode = BucketMode(word: word), mode.isSetByOperators else {
            throw CommandFailure("'\(word)' is not a mode; give 'open' or 'sealed'", .usage)
        }
        try doing(folder) { () throws(StoreAdminError) in try admin.setMode(mode, of: name, in: app) }
        Terminal.write("buckets named \(name) of the app \(app) are \(mode.word), for all users\n")
        try notifyServer(app, name, mode, folder)
    }

    @discardableResult
    private static func doing<Value>(
        _ folder: DataFolder, _ body: () throws(StoreAdminError) -> Value
    ) throws(CommandFailure) -> Value {
        do {
            return try body()
        } catch {
            throw CommandFailure("\(folder.path): \(error)")
        }
    }

    private static func text(_ modes: StoreAdmin.Modes) -> String {
        let trees = modes.tree > 0 ? ", \(modes.tree) tree" : ""
        return "new buckets: \(modes.ofNew.word)\nexisting: \(modes.open) open, \(modes.sealed) sealed\(trees)\n"
    }

    /// Makes a running server notify its clients. The server checks their changes either way.
    private static func notifyServer(
        _ app: AppID, _ name: BucketName, _ mode: BucketMode, _ folder: DataFolder
    ) throws(CommandFailure) {
        do throws(ControlError) {
            try ControlClient.changeMode(app, name, mode, folder: folder)
        } catch {
            if error.isNoServer { return }
            throw CommandFailure("the mode is set; connected clients may not have been notified: \(error)")
        }
    }
}

import ThicketCommandLine
import ThicketProtocol

/// The commands that work on a data folder, whether a server runs on it or not.
enum AdminCommands {
    static func folder(_ config: ServerConfig, creating: Bool) throws(CommandFailure) -> DataFolder {
        do throws(DataFolderError) {
            return try DataFolder(config.data, creating: creating)
        } catch {
            throw CommandFailure(error)
        }
    }
    static func createApp(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        throw CommandFailure("this command is not available yet")
    }
    static func createToken(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        throw CommandFailure("this command is not available yet")
    }
    static func check(_ config: ServerConfig) throws(CommandFailure) {
        throw CommandFailure("this command is not available yet")
    }
    static func backup(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        throw CommandFailure("this command is not available yet")
    }
    static func restore(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        throw CommandFailure("this command is not available yet")
    }
}
enum TokenImport {
    static func run(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        throw CommandFailure("this command is not available yet")
    }
}
enum ServeCommand {
    static func run(_ loaded: LoadedConfig) throws(CommandFailure) {
        throw CommandFailure("this command is not available yet")
    }
}

import ThicketProtocol

/// Paths in the folder that block one file only.
extension Mirror {
    func hold(_ key: String, _ place: String, _ reason: String) {
        blocked.insert(key)
        missing[key] = nil
        report(place, reason)
    }

    /// What has happened to a mirrored file that the scan of the folder has not found.
    func missingFile(_ file: FileName) -> MissingFile {
        let place = path(file.name)
        if let reason = Files.obstacle(place) { return .hidden(reason) }
        guard Files.stamp(place) != nil else { return .gone }
        return MissingFile(file, among: Files.names(in: directory)) { state[$0] != nil }
    }

    /// The obstacle to a new file, with the name of the path; nil: none.
    func obstacle(to step: MirrorStep) -> (name: String, reason: String)? {
        guard case .write(nil, let base, _) = step else { return nil }
        let name = base.file.name
        if let reason = Files.obstacle(path(name)) { return (name, reason) }
        guard Files.stamp(path(name)) != nil else { return nil }
        guard let other = FolderScan.alias(of: name, among: Files.names(in: directory)) else { return nil }
        return (name, "this folder does not distinguish its name from \(other)")
    }

    /// Why a step was not done: because of one path in the folder, which does not block the others, or because the
    /// mirror must end.
    enum PlaceProblem: Error {
        case place(name: String, reason: String)
        case ends(Failure)
    }

    /// Calls `perform` and reports an error of the file system as a problem of that one file.
    func performInPlace(
        _ step: MirrorStep, _ key: String, _ name: FileName?
    ) async throws(PlaceProblem) -> FileName? {
        do throws(Failure) { return try await perform(step, key, name) } catch {
            guard error.isOfOneFile else { throw .ends(error) }
            let place: String
            switch step {
            case .write(_, let base, _): place = base.file.name
            case .delete(let file, _), .setAside(let file): place = file.name
            default: throw .ends(error)
            }
            throw .place(name: place, reason: error.text)
        }
    }

    /// Marks a failure as a problem of one file, which does not block the others.
    func inFolder<Value>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        do throws(Failure) { return try body() } catch {
            var failure = error
            failure.isOfOneFile = true
            throw failure
        }
    }
}

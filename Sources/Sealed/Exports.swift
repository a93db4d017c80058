// Who works with sealed objects needs their shape too.
@_exported import ThicketSealedShape

from sqlanon.engines.base import Kind
def text_of(render, value, kind, type_name=""):
    return render.macro("text", value, kind.value)
